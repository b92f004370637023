package gpu

// Host is what surrounds the GPUs, read with tier 0 where it is asked for
// (`gpu-probe read --host`): looking through /proc takes long on a big node.
type Host struct {
	Stuck      []Stuck        `json:"stuck,omitempty"`      // threads in state D inside the NVIDIA driver
	Daemons    []string       `json:"daemons,omitempty"`    // of those that matter, which run: nv-fabricmanager, nvidia-persistenced, nv-hostengine, nvidia-imex
	NVSwitches int            `json:"nvswitches,omitempty"` // that the kernel's driver holds: a fabric manager must run beside them
	GPUDirect  Opt[GPUDirect] `json:"gpudirect,omitzero"`
	Ports      []Port         `json:"ports,omitempty"` // InfiniBand and RoCE
	Clock      Opt[Clock]     `json:"clock,omitzero"`
	Dirs       []Dir          `json:"dirs,omitempty"` // those that --dirs names
	Faults     []Fault        `json:"faults,omitempty"`
}

// Stuck is a thread that waits uninterruptibly inside the driver.
type Stuck struct {
	PID   int         `json:"pid"`
	TID   int         `json:"tid"`
	Name  string      `json:"name"`  // comm, stripped
	Where string      `json:"where"` // the driver's frame of /proc/PID/stack, or wchan
	Start Opt[uint64] `json:"start_ticks,omitzero"`
	Job   string      `json:"job,omitempty"` // Slurm job id from its cgroup

	// Switches counts how often the thread was put to sleep or put aside: as long
	// as the number stays, it has been in one and the same wait.
	Switches Opt[uint64] `json:"switches,omitzero"`
}

// GPUDirect says by what a network card could reach GPU memory.
type GPUDirect struct {
	Peermem bool `json:"peermem"` // nvidia_peermem or nv_peer_mem is loaded
	DMABuf  bool `json:"dmabuf"`  // the open kernel module on a kernel with dma-buf
}

// Port is one port of an RDMA device (/sys/class/infiniband).
type Port struct {
	Device   string       `json:"device"` // mlx5_0
	Port     int          `json:"port"`
	State    string       `json:"state"`    // active, init, down, armed
	Physical string       `json:"physical"` // linkup, disabled, polling, …
	Layer    string       `json:"layer"`    // infiniband, ethernet
	Rate     Opt[float64] `json:"rate_gbps,omitzero"`
	Counters Counters     `json:"counters,omitempty"` // the kernel's names: link_downed, local_link_integrity_errors, …; some saturate
}

// Clock says whether the clock is disciplined (adjtimex).
type Clock struct {
	Synchronised bool    `json:"synchronised"`
	MaxError     float64 `json:"max_error_seconds"`
}

// Dir is a directory that must be writable.
type Dir struct {
	Path     string      `json:"path"`
	Writable bool        `json:"writable"`
	Free     Opt[uint64] `json:"free_bytes,omitzero"`
	Why      string      `json:"why,omitempty"` // why not writable
}
