package baseline

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
)

// card is an H100, or an A10 without NVLink, ECC and fabric.
func card(index int, name string) gpu.GPU {
	g := gpu.GPU{
		Complete: true,
		Identity: gpu.Identity{
			Index: index, UUID: fmt.Sprintf("GPU-%d", index), PCI: fmt.Sprintf("00000000:%d0:00.0", index+1), Name: name,
			VBIOS: gpu.Some("96.00.89"), InfoROM: gpu.Some("G520.0200"), GSP: gpu.Some("580.95.05"), PCIeMaxGen: gpu.Some(5), Virtualization: gpu.Some("none"),
		},
		Health: gpu.Health{
			PCIeWidth: gpu.Some(16), NVLinksActive: gpu.Some(18), PowerLimit: gpu.Some(700.0), SMClockLimit: gpu.Some(1980), MemoryTotal: gpu.Some(uint64(85 << 30)),
			ECC: gpu.Some(gpu.Switch{Current: true, Pending: true}), MIG: gpu.Some(gpu.Switch{}), Persistence: gpu.Some(true), ComputeMode: gpu.Some("default"),
			Fabric: gpu.Some(gpu.FabricState{State: "completed"}),
		},
	}
	if name != h100 {
		g.Health.NVLinksActive, g.Health.Fabric, g.Health.ECC = gpu.Some(0), gpu.Opt[gpu.FabricState]{}, gpu.Opt[gpu.Switch]{}
		g.Health.PowerLimit, g.VBIOS = gpu.Some(150.0), gpu.Some("94.02")
	}
	return g
}

const h100, a10 = "NVIDIA H100 80GB HBM3", "NVIDIA A10"

// mixed is a node of four H100 and two A10 with an InfiniBand port.
func mixed(name string) Named {
	n := Named{Name: name, Node: gpu.Node{
		Driver: gpu.Driver{Version: gpu.Some("580.95.05"), ConfCompute: gpu.Some(gpu.ConfCompute{})},
		Host: &gpu.Host{
			Daemons: []string{"nvidia-persistenced", "nv-fabricmanager"}, GPUDirect: gpu.Some(gpu.GPUDirect{DMABuf: true}),
			Clock: gpu.Some(gpu.Clock{Synchronised: true}),
			Ports: []gpu.Port{
				{Device: "mlx5_0", Port: 1, State: "active", Layer: "infiniband", Rate: gpu.Some(400.0)},
				{Device: "mlx5_1", Port: 1, State: "down", Layer: "ethernet", Rate: gpu.Some(100.0)},
			},
		},
	}}
	for i := range 6 {
		kind := h100
		if i >= 4 {
			kind = a10
		}
		n.Node.GPUs = append(n.Node.GPUs, card(i, kind))
	}
	return n
}

func TestLearnOneNode(t *testing.T) {
	b, out := Learn([]Named{mixed("n1")})
	if len(out) > 0 {
		t.Errorf("outliers on a node of two kinds: %v", out)
	}
	c := b.Cards[h100]
	if c.Count != 4 || !slices.Equal(c.VBIOS, []string{"96.00.89"}) || c.NVLinks != gpu.Some(18) || c.PowerLimit != 700 || c.ECC != "on" || !c.Fabric {
		t.Errorf("H100: %+v", c)
	}
	if c := b.Cards[a10]; c.Count != 2 || c.PowerLimit != 150 || c.NVLinks != gpu.Some(0) || c.ECC != "" || c.Fabric || c.Instances != nil {
		t.Errorf("A10: %+v", c)
	}
	want := Node{
		Driver: "580.95.05", Daemons: []string{"nv-fabricmanager", "nvidia-persistenced"}, GPUDirect: "dmabuf", ClockSync: true, ConfCompute: "off",
		PCI: []string{"00000000:10:00.0", "00000000:20:00.0", "00000000:30:00.0", "00000000:40:00.0", "00000000:50:00.0", "00000000:60:00.0"},
	}
	if !reflect.DeepEqual(b.Node, want) {
		t.Errorf("node: %+v", b.Node)
	}
	if len(b.Ports) != 1 || b.Ports["mlx5_0/1"] != (Port{"infiniband", 400}) {
		t.Errorf("ports: %v", b.Ports)
	}
	n := mixed("n1")
	if d := Compare(b, &n.Node); len(d) > 0 {
		t.Errorf("the node differs from its own baseline: %v", d)
	}
}

func TestLearnMajority(t *testing.T) {
	odd := mixed("n2")
	odd.Node.Driver.Version = gpu.Some("570.10")
	odd.Node.GPUs[2].VBIOS = gpu.Some("96.00.74")
	odd.Node.GPUs = odd.Node.GPUs[:5]
	odd.Node.Host.Ports[0].Rate = gpu.Some(200.0)
	b, out := Learn([]Named{mixed("n1"), odd, mixed("n3")})
	var got []string
	for _, o := range out {
		got = append(got, o.String())
	}
	want := []string{
		"n2: driver is 570.10, most have 580.95.05",
		"n2: pci is 00000000:10:00.0 00000000:20:00.0 00000000:30:00.0 00000000:40:00.0 00000000:50:00.0, most have 00000000:10:00.0 00000000:20:00.0 00000000:30:00.0 00000000:40:00.0 00000000:50:00.0 00000000:60:00.0",
		"n2: mlx5_0/1 is infiniband 200 Gb/s, most have infiniband 400 Gb/s",
		"n2: count of NVIDIA A10 is 1, most have 2",
		"n2 gpu 2 GPU-2 (NVIDIA H100 80GB HBM3): vbios is 96.00.74, most have 96.00.89",
	}
	if !slices.Equal(got, want) {
		t.Errorf("outliers:\n%s", strings.Join(got, "\n"))
	}
	one, _ := Learn([]Named{mixed("n1")})
	if !reflect.DeepEqual(b, one) {
		t.Errorf("the majority's baseline is not that of a good node:\n%+v\n%+v", b, one)
	}
}

func TestLearnWithoutMajority(t *testing.T) {
	other := mixed("n2")
	other.Node.Driver.Version = gpu.Some("570.10")
	b, out := Learn([]Named{mixed("n1"), other})
	if b.Node.Driver != "" || len(out) != 2 || out[0].String() != "n1: driver is 580.95.05, and nothing is expected: they are not alike" {
		t.Errorf("driver %q, %v", b.Node.Driver, out)
	}
}

// Some cards of a node may be divided on purpose: then no mode is expected of any.
func TestLearnMixedMIG(t *testing.T) {
	n := mixed("n1")
	n.Node.GPUs[0].Health.MIG = gpu.Some(gpu.Switch{Current: true, Pending: true})
	n.Node.GPUs[0].Instances = []gpu.Instance{{Profile: "1g.10gb"}}
	b, out := Learn([]Named{n})
	if c := b.Cards[h100]; c.MIG != "" || c.Instances != nil || len(out) == 0 || b.Cards[a10].MIG != "off" {
		t.Errorf("%+v, %v", c, out)
	}
}

func TestCompare(t *testing.T) {
	b, _ := Learn([]Named{mixed("n1")})
	for name, tt := range map[string]struct {
		change func(*gpu.Node)
		want   []string
	}{
		"power limit":      {func(n *gpu.Node) { n.GPUs[1].Health.PowerLimit = gpu.Some(300.0) }, []string{"GPU-1 power limit: 300 W instead of 700 W"}},
		"half a watt":      {func(n *gpu.Node) { n.GPUs[1].Health.PowerLimit = gpu.Some(699.9) }, nil},
		"links":            {func(n *gpu.Node) { n.GPUs[1].Health.NVLinksActive = gpu.Some(17) }, []string{"GPU-1 active NVLinks: 17 instead of 18"}},
		"links where none": {func(n *gpu.Node) { n.GPUs[4].Health.NVLinksActive = gpu.Some(4) }, []string{"GPU-4 active NVLinks: 4 instead of 0"}},
		"unknown":          {func(n *gpu.Node) { n.GPUs[0].VBIOS = gpu.Opt[string]{} }, []string{"GPU-0 VBIOS: unknown instead of 96.00.89"}},
		"MIG":              {func(n *gpu.Node) { n.GPUs[0].Health.MIG = gpu.Some(gpu.Switch{Current: true}) }, []string{"GPU-0 MIG mode: on instead of off"}},
		"a card less":      {func(n *gpu.Node) { n.GPUs = n.GPUs[:5]; b.Node.PCI = nil }, []string{"number of NVIDIA A10: 1 instead of 2"}},
		"another kind":     {func(n *gpu.Node) { n.GPUs[5].Name = "NVIDIA L4" }, []string{"number of NVIDIA A10: 1 instead of 2", "number of NVIDIA L4: 1 instead of 0"}},
		"fabric":           {func(n *gpu.Node) { n.GPUs[0].Health.Fabric = gpu.Some(gpu.FabricState{State: "completed", Status: 26}) }, []string{"GPU-0 NVLink fabric: off instead of on"}},
		"conf compute":     {func(n *gpu.Node) { n.Driver.ConfCompute = gpu.Some(gpu.ConfCompute{Enabled: true}) }, []string{"confidential computing: on instead of off"}},
		"a daemon":         {func(n *gpu.Node) { n.Host.Daemons = n.Host.Daemons[:1] }, []string{"nv-fabricmanager: stopped instead of running"}},
		"a port":           {func(n *gpu.Node) { n.Host.Ports[0].State = "down" }, []string{"mlx5_0/1: down instead of infiniband 400 Gb/s"}},
		"GPUDirect, clock": {func(n *gpu.Node) {
			n.Host.GPUDirect = gpu.Some(gpu.GPUDirect{Peermem: true})
			n.Host.Clock = gpu.Opt[gpu.Clock]{}
		}, []string{"GPUDirect: peermem instead of dmabuf", "clock: unknown instead of synchronised"}},
		"the host not asked": {func(n *gpu.Node) { n.Host = nil }, nil},
	} {
		n := mixed("n1")
		tt.change(&n.Node)
		var got []string
		for _, d := range Compare(b, &n.Node) {
			s := d.String()
			if d.GPU != nil {
				s = d.GPU.UUID + " " + s
			}
			got = append(got, s)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
		b, _ = Learn([]Named{mixed("n1")})
	}
	n := mixed("n1")
	if d := Compare(Baseline{}, &n.Node); d != nil {
		t.Errorf("without a baseline: %v", d)
	}
}

func TestOneOfAListMustFit(t *testing.T) {
	b := Baseline{Cards: map[string]Card{h100: {VBIOS: []string{"a", "96.00.89"}}}}
	g := card(0, h100)
	if d, ok := b.CompareCard(&g, Find("vbios")); d != nil || !ok {
		t.Errorf("%v %t", d, ok)
	}
	g.VBIOS = gpu.Some("b")
	if d, _ := b.CompareCard(&g, Find("vbios")); d == nil || d.String() != "VBIOS: b instead of a or 96.00.89" {
		t.Errorf("%v", d)
	}
}

// What was written is read back as it was, MIG layout and a link count of 0
// included.
func TestWriteAndLoad(t *testing.T) {
	n := mixed("n1")
	for i := range 4 {
		g := &n.Node.GPUs[i]
		g.Health.MIG = gpu.Some(gpu.Switch{Current: true, Pending: true})
		g.Instances = []gpu.Instance{{GI: 1, Profile: "3g.40gb"}, {GI: 2, Profile: "1g.10gb"}, {GI: 3, Profile: "1g.10gb"}}
	}
	b, _ := Learn([]Named{n})
	var text, again strings.Builder
	if err := Write(&text, b); err != nil {
		t.Fatal(err)
	}
	_ = Write(&again, b) // a Builder takes everything
	if text.String() != again.String() {
		t.Error("the same baseline gives two texts")
	}
	if !strings.Contains(text.String(), `instances = { "1g.10gb" = 2, "3g.40gb" = 1 }`) {
		t.Errorf("no layout:\n%s", text.String())
	}
	back, err := Load(write(t, text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, b) {
		t.Errorf("read back:\n%+v\nwritten:\n%+v", back, b)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "baseline.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadIsStrict(t *testing.T) {
	const schema = "schema = \"gpuhooks.baseline/1\"\n"
	for text, want := range map[string]string{
		"":           `schema: "" is not "gpuhooks.baseline/1"`,
		schema + "x": "baseline.toml:2: ",
		schema + "[card.\"NVIDIA A10\"]\nvbois = [\"a\"]\n":      `baseline.toml:3: unknown key "card.\"NVIDIA A10\".vbois" (allowed here: count, vbios,`,
		schema + "[card.a]\necc = \"yes\"\n":                     `card."a".ecc: "yes" is not one of ["on" "off"]`,
		schema + "[card.a]\npcie_gen = -1\n":                     `card."a": a number is negative`,
		schema + "[card.a]\nnvlinks = \"many\"\n":                "nvlinks",
		schema + "[port.\"mlx5_0/1\"]\nlayer = \"token ring\"\n": `port."mlx5_0/1".layer`,
		schema + "[node]\ngpudirect = \"yes\"\n":                 "node.gpudirect",
	} {
		if _, err := Load(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if b, err := LoadIf(filepath.Join(t.TempDir(), "none")); err != nil || b.Cards != nil {
		t.Errorf("a missing file: %v", err)
	}
	if os.Geteuid() == 0 {
		path := write(t, schema)
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadIf(path); err == nil {
			t.Error("a file that anybody may write was read")
		}
	}
}
