package node

import (
	"os"
	"path/filepath"
	"testing"

	"gpuhooks/internal/config"
)

func TestWithoutGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		slurm, gres string
		want        bool
	}{
		"NVIDIA":              {"NodeName=n1 Gres=gpu:2\n", "Name=gpu File=/dev/nvidia[0-1]\n", false},
		"NVIDIA, detected":    {"NodeName=n1 Gres=gpu:2\n", "AutoDetect=nvml\n", false},
		"no gres.conf":        {"NodeName=n1 Gres=gpu:2\n", "", false},
		"no Gres":             {"NodeName=n1\n", "Name=gpu File=/dev/nvidia0\n", true},
		"another node's":      {"NodeName=n2 Gres=gpu:2\n", "Name=gpu File=/dev/nvidia0\n", false},
		"AMD files":           {"NodeName=n1 Gres=gpu:2\n", "Name=gpu File=/dev/dri/renderD[128,136]\n", true},
		"AMD, detected":       {"NodeName=n1 Gres=gpu:2\n", "AutoDetect=rsmi\n", true},
		"AMD and NVIDIA":      {"NodeName=n1 Gres=gpu:2\n", "Name=gpu File=/dev/dri/renderD128\nName=gpu File=/dev/nvidia0\n", false},
		"only shards, NVIDIA": {"NodeName=n1 Gres=gpu:1,shard:4\n", "Name=gpu File=/dev/nvidia0\nName=shard Count=4\n", false},
		"no slurm.conf":       {"", "AutoDetect=rsmi\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := config.Default()
			cfg.Slurm.Conf, cfg.Slurm.GresConf = filepath.Join(dir, "slurm.conf"), filepath.Join(dir, "gres.conf")
			for path, text := range map[string]string{cfg.Slurm.Conf: c.slurm, cfg.Slurm.GresConf: c.gres} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := WithoutGPUs(cfg, "", "n1"); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
