//go:build cgo

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"gpuhooks/internal/host"
	"gpuhooks/internal/nvml"
)

// `gpu-probe accept` asks what only a GPU can tell, for scripts/gpu-acceptance.
// It is no part of what the other programs use and stands in no help text.
//
//	gpu-probe accept --group NAME [--gpu N] [--for 60s] [--nvml LIB] [--root DIR] [--uid N]
//	        asks the questions of one group; one JSON answer a line
//	gpu-probe accept --time ID [--runs 50] [--for 45s] [--fresh FILE] -- COMMAND…
//	        times a command
//	gpu-probe accept --lost GROUP --status N [--text WHY]
//	        the answer line that says why a group has none
//	gpu-probe accept --told ID --text ANSWER
//	        an answer that the script has from elsewhere
//	gpu-probe accept --merge FILE [--table]
//	        makes one document of the lines, or its table
type acceptOptions struct {
	group, root, nvml string
	gpu               int
	window            time.Duration
	uid               int
	timed, fresh      string
	runs              int
	lost, told, text  string
	status            int
	merge             string
	table             bool
	command           []string
}

// groups are asked by a process each, so that a hang costs one group only.
var groups = map[string]func(*asker){
	"inventory": (*asker).inventory,
	"support":   (*asker).support,
	"gpm":       (*asker).gpm,
	"rights":    (*asker).rights,
	"idle":      (*asker).idle,
	"energy":    (*asker).energy,
	"ring":      (*asker).ringIdle,
	"client":    (*asker).client,
	"load":      (*asker).load,
}

func acceptFlags(args []string) (acceptOptions, error) {
	var o acceptOptions
	f := newFlags("accept")
	f.StringVar(&o.group, "group", "", "")
	f.StringVar(&o.root, "root", "/", "")
	f.StringVar(&o.nvml, "nvml", "", "")
	f.IntVar(&o.gpu, "gpu", 0, "")
	f.DurationVar(&o.window, "for", time.Minute, "")
	f.IntVar(&o.uid, "uid", 65534, "")
	f.StringVar(&o.timed, "time", "", "")
	f.StringVar(&o.fresh, "fresh", "", "")
	f.IntVar(&o.runs, "runs", 50, "")
	f.StringVar(&o.lost, "lost", "", "")
	f.StringVar(&o.told, "told", "", "")
	f.StringVar(&o.text, "text", "", "")
	f.IntVar(&o.status, "status", 0, "")
	f.StringVar(&o.merge, "merge", "", "")
	f.BoolVar(&o.table, "table", false, "")
	if err := f.Parse(args); err != nil {
		return o, usageError{err}
	}
	o.command = f.Args()
	if len(o.command) > 0 && o.timed == "" {
		return o, usageError{fmt.Errorf("unexpected argument %q", f.Arg(0))}
	}
	if o.window < time.Second || o.window > 10*time.Minute {
		return o, usageError{fmt.Errorf("--for %v: must lie between 1s and 10m", o.window)}
	}
	return o, nil
}

// accept runs one form of the command.
func accept(args []string, stdout io.Writer) error {
	o, err := acceptFlags(args)
	if err != nil {
		return err
	}
	put := func(a answer) error { return json.NewEncoder(stdout).Encode(a) }
	switch {
	case o.merge != "":
		return mergeAnswers(o.merge, o.table, stdout)
	case o.lost != "":
		return put(lostGroup(o.lost, o.status, o.text))
	case o.told != "":
		return put(answer{ID: o.told, State: answered, Answer: clean(o.text)})
	case o.timed != "":
		a, err := timeCommand(o.timed, o.command, o.runs, o.window, o.fresh)
		if err != nil {
			return err
		}
		return put(a)
	}
	ask, known := groups[o.group]
	if !known {
		return usageError{fmt.Errorf("--group %q: not a group of questions", o.group)}
	}
	k := &asker{o: o, fs: host.NewFS(o.root), put: put}
	if o.group == "rights" {
		if err := k.dropRights(); err != nil {
			return err
		}
	}
	debug.SetGCPercent(50) // as the sampler, whose memory is weighed
	debug.SetMemoryLimit(8 << 20)
	k.memory = append(k.memory, residentKiB())
	if err := k.open(); err != nil {
		return err
	}
	defer func() { k.lib.Close() }()
	k.memory = append(k.memory, residentKiB())
	ask(k)
	return k.failed
}

// asker asks the questions of a group on one GPU.
type asker struct {
	o      acceptOptions
	fs     host.FS
	put    func(answer) error
	lib    *nvml.Library
	dev    *nvml.Device
	uuid   string
	memory []int // resident KiB: before NVML, with it
	failed error // of writing
}

// open loads the driver's library and finds the GPU.
func (k *asker) open() error {
	lib, fault := nvml.Open(k.o.nvml)
	if fault != nil {
		return fmt.Errorf("the NVIDIA driver does not answer: %w", fault)
	}
	k.lib = lib
	if k.o.group == "inventory" { // one lost card must not hide the others
		return nil
	}
	uuid, fault := lib.UUID(k.o.gpu)
	if fault != nil {
		return fmt.Errorf("GPU %d: %w", k.o.gpu, fault)
	}
	k.uuid = uuid
	if k.dev, fault = lib.Device(uuid); fault != nil {
		return fmt.Errorf("GPU %d: %w", k.o.gpu, fault)
	}
	return nil
}

// say writes an answer: a sentence and the numbers behind it.
func (k *asker) say(id string, values map[string]any, format string, args ...any) {
	k.write(answer{ID: id, State: answered, Answer: fmt.Sprintf(format, args...), Values: values})
}

// lacks says that the card or driver has nothing to answer with.
func (k *asker) lacks(id, format string, args ...any) {
	k.write(answer{ID: id, State: unsupported, Answer: fmt.Sprintf(format, args...)})
}

// fail says that asking failed.
func (k *asker) fail(id, format string, args ...any) {
	k.write(answer{ID: id, State: failed, Answer: fmt.Sprintf(format, args...)})
}

func (k *asker) write(a answer) {
	if err := k.put(a); err != nil && k.failed == nil {
		k.failed = err
	}
}
