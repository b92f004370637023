package slurmconf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseGres(t *testing.T) {
	const text = `
AutoDetect=nvml
NodeName=tux3 AutoDetect=off Name=gpu Type=k80 File=/dev/nvidia[0-3] Cores=0-15
NodeName=gpu[01-31] Name=gpu Type=a100 File=/dev/nvidia[3,2,1,0]
NodeName=gpu[01-31] Name=shard File=/dev/nvidia[0-3] Count=16
NodeName=mig1 AutoDetect=off Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap66,/dev/nvidia-caps/nvidia-cap67
NodeName=mig1 Name=gpu Type=h100 File=/dev/nvidia1,/dev/nvidia2 Flags=no_gpu_env
`
	g, err := ParseGres("gres.conf", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		node, auto string
		devices    []string
		shard      bool
	}{
		{"tux3", "off", []string{"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3"}, false},
		{"gpu07", "nvml", []string{"/dev/nvidia3", "/dev/nvidia2", "/dev/nvidia1", "/dev/nvidia0"}, true},
		{"mig1", "off", []string{"/dev/nvidia0,/dev/nvidia-caps/nvidia-cap66,/dev/nvidia-caps/nvidia-cap67", "/dev/nvidia1", "/dev/nvidia2"}, false},
		{"other", "nvml", nil, false},
		{"", "nvml", nil, false},
	}
	for _, tt := range tests {
		n := g.ForNode(tt.node)
		var got []string
		for _, d := range n.Devices() {
			got = append(got, strings.Join(d.Files, ","))
		}
		if n.Auto != tt.auto || !reflect.DeepEqual(got, tt.devices) || n.Has("shard") != tt.shard {
			t.Errorf("%s: auto %q, devices %q, shard %v", tt.node, n.Auto, got, n.Has("shard"))
		}
	}
}

func TestGresOrder(t *testing.T) {
	// Lines without NodeName come first; a repeated device counts once (case A36).
	g, err := ParseGres("gres.conf", []byte("NodeName=n1 Name=gpu File=/dev/nvidia[2-3]\nName=gpu File=/dev/nvidia[0-2]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range g.ForNode("n1").Devices() {
		got = append(got, d.Files...)
	}
	if want := []string{"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3"}; !reflect.DeepEqual(got, want) {
		t.Errorf("devices %q, want %q", got, want)
	}
}

func TestInlineAutoDetectNeedsNodeName(t *testing.T) {
	g, err := ParseGres("gres.conf", []byte("Name=gpu File=/dev/nvidia0 AutoDetect=nvml\n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := g.ForNode("n1"); n.Detects() || len(n.Devices()) != 1 {
		t.Errorf("AutoDetect in a line without NodeName took effect: %+v", n)
	}
}

func TestGresDigest(t *testing.T) {
	parse := func(s string) string {
		g, _ := ParseGres("g", []byte(s))
		return g.Digest
	}
	a, b := parse("AutoDetect=nvml\n"), parse("# comment\nAutoDetect=nvml\n")
	if a != b {
		t.Error("a comment changes the digest")
	}
	if a == parse("AutoDetect=nvidia\n") {
		t.Error("another method has the same digest")
	}
}

func TestGresProblems(t *testing.T) {
	tests := []struct{ text, want string }{
		{"Name=gpu Fille=/dev/nvidia0", "g:1: Fille: unknown key"},
		{"AutoDetect=nvlm", `g:1: AutoDetect: "nvlm" is not one of nvml, nvidia,`},
		{"Name=gpu MultipleFiles=/dev/nvidia0", "g:1: MultipleFiles: needs two or more files"},
		{"Name=gpu File=/dev/nvidia0 MultipleFiles=/dev/a,/dev/b", "g:1: MultipleFiles: a line has either File or MultipleFiles, not both"},
		{"Name=gpu Type=a Count=7 File=/dev/nvidia[0-7]", "g:1: Count: 7, but the line has 8 devices"},
		{"Name=gpu Count=many", `g:1: Count: "many" is not a count`},
		{"Name=gpu File=/dev/nvidia[0-2000]", "g:1: File: more than 1024 files"},
		{"\n\nGPUNODE1: GPU02", `g:3: "GPUNODE1: GPU02" is not key=value`},
	}
	for _, tt := range tests {
		_, err := ParseGres("g", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %q", tt.text, err, tt.want)
		}
	}
}

// TestRealGresFiles parses gres.conf files from public reports. Only those
// with a fault of syntax may give an error.
func TestRealGresFiles(t *testing.T) {
	broken := map[string]bool{
		"A02-mig-cap-typo-and-stray-line": true,
		"A42-count-differs-from-files":    true,
		"A43-single-multiplefiles":        true,
	}
	dirs, err := filepath.Glob("testdata/gres/*")
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d cases, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if _, err := ReadGres(filepath.Join(dir, "gres.conf")); (err != nil) != broken[name] {
			t.Errorf("%s: gres.conf: %v", name, err)
		}
		if _, err := ReadConf(filepath.Join(dir, "slurm.conf")); err != nil {
			t.Errorf("%s: slurm.conf: %v", name, err)
		}
	}
}

func TestParseSlurmdG(t *testing.T) {
	data, err := os.ReadFile("testdata/slurmd-G-2205-mig.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseSlurmdG(data)
	if err != nil {
		t.Fatal(err)
	}
	want := []Device{
		{Type: "nvidia_h100_80gb_hbm3_3g.40gb", Files: []string{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"}},
		{Type: "nvidia_h100_80gb_hbm3_2g.20gb", Files: []string{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"}},
		{Type: "nvidia_h100_80gb_hbm3", Files: []string{"/dev/nvidia1"}},
		{Type: "nvidia_h100_80gb_hbm3_1g.10gb", Files: []string{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap84", "/dev/nvidia-caps/nvidia-cap85"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestParseSlurmdGForms(t *testing.T) {
	tests := []struct {
		name, text string
		devices    int
		ok         bool
	}{
		{"log prefix", "[2026-01-02T03:04:05] slurmd: debug:  Gres Name=gpu Type=(null) Count=1 Index=0 ID=7696487 File=/dev/nvidia0 Cores=0-31 CoreCnt=64 Links=-1,4 Flags=HAS_FILE,ENV_NVML", 1, true},
		{"a range", "slurmd: Gres Name=gpu Type=a100 Count=4 File=/dev/nvidia[0-3]", 4, true},
		{"shards beside", "slurmd: Gres Name=shard Type=a Count=4 File=/dev/nvidia0\nslurmd: Gres Name=gpu Type=a Count=1 File=/dev/nvidia0", 1, true},
		{"empty (24.11.0)", "", 0, false},
		{"count and files differ", "slurmd: Gres Name=gpu Count=3 File=/dev/nvidia[0-1]", 0, false},
		{"no file", "slurmd: Gres Name=gpu Count=3", 0, false},
	}
	for _, tt := range tests {
		got, err := ParseSlurmdG([]byte(tt.text))
		if len(got) != tt.devices || (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func TestVersion(t *testing.T) {
	for in, want := range map[string]string{
		"slurm-wlm 22.05.8": "22.05.8", "slurm 25.11.2": "25.11.2", "23.02.6-1": "23.02.6", "24.11.0-0rc1": "24.11.0", "26.05": "26.05.0",
		"": "unknown", "unstable": "unknown", "1.2.3": "unknown",
	} {
		if v, ok := ParseVersion(in); v.String() != want || ok != v.Known() {
			t.Errorf("%q: %v, want %s", in, v, want)
		}
	}
	v, _ := ParseVersion("23.02.6")
	if v.AtLeast(23, 2, 7) || !v.AtLeast(23, 2, 6) || !v.AtLeast(22, 5, 8) || v.AtLeast(23, 11, 0) || (Version{}).AtLeast(1, 0, 0) {
		t.Error("AtLeast is wrong")
	}
}

func FuzzGres(f *testing.F) {
	files, err := filepath.Glob("testdata/gres/*/gres.conf")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, _ := ParseGres("f", data)
		if n := len(g.ForNode("gpu1").Devices()); n > maxDevices {
			t.Fatalf("%d devices", n)
		}
	})
}

func FuzzSlurmdG(f *testing.F) {
	data, err := os.ReadFile("testdata/slurmd-G-2205-mig.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ParseSlurmdG(data)
		if (len(d) == 0) != (err != nil) {
			t.Fatalf("%d devices, error %v", len(d), err)
		}
	})
}
