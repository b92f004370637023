package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gpuhooks/internal/gpu"
)

// Reading is what one run of the probe gave. It is always usable: what did not
// arrive is not in it, and Answer says so.
type Reading struct {
	Node    gpu.Node
	Kernel  *Kernel // nil when the kernel log did not arrive
	Answer  gpu.Answer
	Why     string        // why the answer is not whole, in a few words
	Stderr  string        // last lines of the probe's stderr; foreign text
	Elapsed time.Duration // from the start of the probe to the decision
	Version string        // of the probe
	Calls   int           // NVML calls, 0 when not counted
}

// errGarbage is an answer that is not of our protocol.
var errGarbage = errors.New("not the answer of a gpu-probe of this version")

// collector puts the lines of an answer together, in the goroutine that reads
// them: who waits for the answer is woken once and not by each line.
type collector struct {
	mu      sync.Mutex
	closed  bool
	reading Reading
	hello   bool
	done    bool
}

// take takes one line as it came. It wants no more after the last one, or when
// the caller has stopped waiting.
func (c *collector) take(b []byte) (more bool, err error) {
	l, err := parseLine(b)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, nil
	}
	err = c.add(l)
	return err == nil && !c.done, err
}

// close ends the taking and says whether the answer is whole.
func (c *collector) close() (whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.done
}

// parseLine decodes one line of an answer.
func parseLine(b []byte) (Line, error) {
	var l Line
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("%w: %w", errGarbage, err)
	}
	return l, nil
}

// add takes one line. The first one must be a hello of our protocol.
func (c *collector) add(l Line) error {
	r := &c.reading
	if !c.hello {
		if l.Hello == nil {
			return fmt.Errorf("%w: it does not begin with hello", errGarbage)
		}
		if l.Hello.Protocol != Protocol {
			return fmt.Errorf("%w: it speaks %q, not %q", errGarbage, l.Hello.Protocol, Protocol)
		}
		c.hello = true
		r.Version, r.Node.BootID = l.Hello.Version, l.Hello.BootID
		return nil
	}
	switch {
	case l.Presence != nil:
		r.Node.Presence = *l.Presence
	case l.Kernel != nil:
		r.Kernel = l.Kernel
	case l.Driver != nil:
		r.Node.Driver = *l.Driver
	case l.GPU != nil:
		c.addGPU(*l.GPU)
	case l.Host != nil:
		r.Node.Host = l.Host
	case l.Fault != nil:
		r.Node.Faults = append(r.Node.Faults, *l.Fault)
	case l.Done != nil:
		c.done, r.Calls = true, l.Done.Calls
	default:
		return fmt.Errorf("%w: a line says nothing", errGarbage)
	}
	return nil
}

// addGPU takes a card's line; a later one replaces the earlier.
func (c *collector) addGPU(g gpu.GPU) {
	gpus := c.reading.Node.GPUs
	i, found := slices.BinarySearchFunc(gpus, g.Index, func(have gpu.GPU, index int) int { return have.Index - index })
	if found {
		gpus[i] = g
		return
	}
	c.reading.Node.GPUs = slices.Insert(gpus, i, g)
}

// answered says that something came from the driver. Hello and what was read
// from /dev, PCI and the kernel log come without it.
func (c *collector) answered() bool {
	n := &c.reading.Node
	return len(n.GPUs) > 0 || len(n.Faults) > 0 || n.Driver != (gpu.Driver{})
}
