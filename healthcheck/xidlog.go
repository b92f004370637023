package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/node"
	"gpuhooks/internal/xid"
)

func newXID(env cli.Env, o *options) *cli.Command {
	c := &cli.Command{
		Use:   "xid",
		Short: "Find the GPU events in a kernel log that somebody brings",
		Long: `Find the GPU events in a kernel log that somebody brings: XIDs, an NVSwitch's
SXids, GPUs that fell off the bus, trouble of the GPU's system processor, a driver
that does not fit its library. It says what each means and what to do, and needs
neither driver nor GPU.

The log may be that of dmesg (also -T, -x, -r, --time-format iso), journalctl (short
forms, -o json), syslog, /dev/kmsg, or a container's JSON lines; lines of any length,
and as many as there are. Lines that another program wrote raise nothing. Compressed
logs: zcat syslog.2.gz | gpu-healthcheck xid --file -

With --json it prints one object a line for each line that raises an event, in the
log's order; what a line does not say is null. "action" is NVIDIA's word for that
line by itself, "pci", "pid" and "process" are as printed.

EXIT STATUS
  0  nothing asks for more than a restart of the application
  1  an event asks for more
  2  usage or configuration
  3  the log could not be read`,
		Example: `  gpu-healthcheck xid --file /var/log/syslog
  journalctl -k -b -1 | gpu-healthcheck xid --file -
  dmesg | gpu-healthcheck xid --file - --json | jq -r .action`,
		Args: cli.NoArgs,
	}
	file := c.Flags().String("file", "", "the `LOG`; - is standard input")
	asJSON := c.Flags().Bool("json", false, "print one JSON object a line")
	c.RunE = func(*cli.Command, []string) error {
		if *file == "" {
			return &cli.ExitError{Code: cli.Usage, Err: errors.New("xid: which log: give --file"), Hint: "see gpu-healthcheck xid --help"}
		}
		return runXID(env, *o, *file, *asJSON)
	}
	return c
}

func runXID(env cli.Env, o options, path string, asJSON bool) error {
	conf, err := cli.LoadConfig(o.config)
	if err != nil {
		return err
	}
	catalogue, err := node.Catalogue(conf.Paths.XID)
	if err != nil {
		return &cli.ExitError{Code: cli.Usage, Err: err}
	}
	log, name := env.Stdin, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		log, name = f, path
	}
	out := bufio.NewWriter(env.Stdout)
	found := postMortem{name: name, catalogue: catalogue}
	take := found.take
	if asJSON {
		take = func(l xid.Line) error {
			found.note(l)
			// At once: the log may be one that somebody follows.
			return errors.Join(writeEvent(out, l, catalogue), out.Flush())
		}
	}
	if err = eachEvent(log, &found.log, take); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	} else if !asJSON {
		found.print(out)
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if found.asks {
		return cli.Exit(cli.Failed)
	}
	return nil
}

// maxLogLine is how much of a line is looked at; the kernel's own have 1 KiB, a
// container's JSON a few times that.
const maxLogLine = 1 << 20

// eachEvent reads a log line by line, of whatever length, in bounded memory.
func eachEvent(r io.Reader, log *xid.Log, take func(xid.Line) error) error {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte // a line that does not fit into the buffer
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line[:min(len(line), maxLogLine-len(long))]...)
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(long) > 0 {
			line = append(long, line[:min(len(line), maxLogLine-len(long))]...)
			long = long[:0]
		}
		if len(line) > 0 {
			if l, ok := log.Add(line); ok {
				if err := take(l); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return nil
		}
	}
}

// logEvent is one line of --json. What a line does not say is null.
type logEvent struct {
	Line    uint64          `json:"line"`
	Kind    xid.Kind        `json:"kind"`
	Code    gpu.Opt[int]    `json:"code"`
	PCI     gpu.Opt[string] `json:"pci"`
	UUID    gpu.Opt[string] `json:"uuid"` // of the GPU, where the log has told it before
	GI      gpu.Opt[int]    `json:"gi"`
	CI      gpu.Opt[int]    `json:"ci"`
	PID     any             `json:"pid"` // a number, or "<unknown>", "<n/a>" as the driver printed it
	Process gpu.Opt[string] `json:"process"`
	Action  string          `json:"action"`
	Meaning string          `json:"meaning"`
	Time    gpu.Opt[string] `json:"time"` // as the log printed it
	Text    gpu.Opt[string] `json:"text"` // the driver's own words
	Count   int             `json:"count"`
}

func writeEvent(w io.Writer, l xid.Line, c xid.Catalogue) error {
	e := logEvent{
		Line: l.Seq, Kind: l.Kind, PCI: said(l.Printed.PCI), UUID: said(l.UUID), GI: l.GI, CI: l.CI, Process: said(l.Printed.Process),
		Action: xid.Judge(l.Event, c).Action.Bucket(), Meaning: xid.Meaning(l.Event, c),
		Time: said(l.Stamp), Text: said(l.Text), Count: l.Count,
	}
	if l.Code != 0 {
		e.Code = gpu.Some(l.Code)
	}
	if n, ok := l.Event.PID.Get(); ok {
		e.PID = n
	} else if l.Printed.PID != "" {
		e.PID = l.Printed.PID
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(e)
}

func said(s string) gpu.Opt[string] {
	if s == "" {
		return gpu.Opt[string]{}
	}
	return gpu.Some(s)
}
