package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	early   map[int][]byte // by index: lines of cards whose last line has not come
	hello   bool
	done    bool
}

// take takes one line as it came. It wants no more after the last one, or when
// the caller has stopped waiting.
func (c *collector) take(b []byte) (more bool, err error) {
	if index, ok := early(b); ok && c.hold(index, b) {
		return true, nil
	}
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
	if !c.closed {
		c.closed = true
		c.takeHeld()
	}
	return c.done
}

// early tells a card's decisive readings from its last line, without decoding
// them: mostly the last line follows in a moment, and nobody needs the other.
func early(line []byte) (index int, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"gpu":{"index":`))
	digits, rest, ok2 := bytes.Cut(rest, []byte{','})
	index, err := strconv.Atoi(string(digits))
	// In a text within the line the quotes would be escaped.
	return index, ok && ok2 && err == nil && bytes.Contains(rest, []byte(`,"complete":false,`))
}

// hold keeps an early line until the card's last one comes.
func (c *collector) hold(index int, line []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hello || c.closed {
		return false
	}
	if c.early == nil {
		c.early = map[int][]byte{}
	}
	c.early[index] = bytes.Clone(line)
	return true
}

// takeHeld decodes the early lines of the cards that said no more.
func (c *collector) takeHeld() {
	for index, b := range c.early {
		l, err := parseLine(b)
		if err != nil || l.GPU == nil {
			text := fmt.Sprintf("the line of GPU %d cannot be read", index)
			c.reading.Node.Faults = append(c.reading.Node.Faults, gpu.Fault{Call: "gpu-probe", Kind: gpu.FaultGarbage, Text: text})
			continue
		}
		c.addGPU(*l.GPU)
	}
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
	if g.Complete {
		delete(c.early, g.Index)
	}
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
