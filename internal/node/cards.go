package node

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"gpuhooks/internal/gpu"
)

// A card that had so many faults in so long returns again and again.
const (
	lemonFaults = 3
	lemonSpan   = 30 * 24 * time.Hour
)

// Card is one card's history, wherever in the node it sat.
type Card struct {
	GPU      gpu.Identity   `json:"gpu"`      // as it was seen last
	Slots    []string       `json:"slots"`    // PCI addresses, in the order in which it was seen there
	Episodes int            `json:"episodes"` // from a good look to a fault
	Recent   int            `json:"recent"`   // of them in the last 30 days
	Drains   int            `json:"drains"`   // of the node, because of it
	Open     bool           `json:"open"`     // the last episode was neither acknowledged nor followed by another
	Codes    map[string]int `json:"codes"`
	First    time.Time      `json:"first"`
	Last     time.Time      `json:"last"` // fault
}

// Lemon says that the card returns again and again.
func (c Card) Lemon() bool { return c.Recent >= lemonFaults }

// sameCard compares by serial number, else by UUID, else by address. A UUID
// belongs to one card in every slot.
func sameCard(a, b gpu.Identity) bool {
	x, ok := a.Serial.Get()
	y, ok2 := b.Serial.Get()
	switch {
	case ok && ok2:
		return x == y
	case a.UUID != "" && b.UUID != "":
		return a.UUID == b.UUID
	}
	return a.PCI != "" && a.PCI == b.PCI
}

// Cards makes the history of each card, the worst first.
func Cards(faults []Fault, now time.Time) []Card {
	var cards []Card
	for _, f := range faults {
		if f.GPU == nil {
			continue
		}
		i := slices.IndexFunc(cards, func(c Card) bool { return sameCard(c.GPU, *f.GPU) })
		if i < 0 {
			cards = append(cards, Card{First: f.Time, Codes: map[string]int{}})
			i = len(cards) - 1
		}
		cards[i].take(f, now)
	}
	sort.SliceStable(cards, func(i, j int) bool {
		a, b := cards[i], cards[j]
		return cmp.Or(cmp.Compare(b.Recent, a.Recent), cmp.Compare(b.Episodes, a.Episodes), b.Last.Compare(a.Last)) < 0
	})
	return cards
}

func (c *Card) take(f Fault, now time.Time) {
	before := c.GPU
	c.GPU = *f.GPU
	if c.GPU.Name = cmp.Or(c.GPU.Name, before.Name); !c.GPU.Serial.IsSet() {
		c.GPU.Serial = before.Serial // a lost card tells neither
	}
	if f.GPU.PCI != "" && !slices.Contains(c.Slots, f.GPU.PCI) {
		c.Slots = append(c.Slots, f.GPU.PCI)
	}
	if f.Kind == FaultAck {
		c.Open = false
		return
	}
	c.Open, c.Last = true, f.Time
	c.Codes[f.Code]++
	if f.Kind == FaultDrain {
		c.Drains++
	}
	if f.Opens {
		c.Episodes++
		if now.Sub(f.Time) <= lemonSpan {
			c.Recent++
		}
	}
}

// Is says whether that is this card, in whichever slot.
func (c Card) Is(g gpu.Identity) bool { return sameCard(c.GPU, g) }
