package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
)

// dash stands where a value is unknown; the notes say why.
const dash = "–"

// percent is "82%". What is not quite nothing does not become 0%, and what is
// not quite all not 100%.
func percent(v float64) string {
	p := math.Round(v * 100)
	switch {
	case v > 0 && p == 0:
		return "<1%"
	case v < 1 && p == 100:
		return "99%"
	}
	return fmt.Sprintf("%.0f%%", p)
}

func percentOr(v float64, ok bool) string {
	if !ok {
		return dash
	}
	return percent(v)
}

// gigabytes is in units of 1024³, as jobstats and nvidia-smi show memory.
func gigabytes(bytes float64) string { return fmt.Sprintf("%.1f", bytes/(1<<30)) }

// wattHours shows an energy in the unit that fits.
func wattHours(joules float64) string {
	wh := joules / 3600
	switch {
	case wh < 0.1:
		return fmt.Sprintf("%.0fJ", joules)
	case wh < 100:
		return fmt.Sprintf("%.1fWh", wh)
	case wh < 1e6:
		return fmt.Sprintf("%.2fkWh", wh/1000)
	}
	return fmt.Sprintf("%.2fMWh", wh/1e6)
}

// hours is Slurm's way to write a duration: 1-02:03:04.
func hours(seconds float64) string {
	s := int64(math.Round(seconds))
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if s >= 24*3600 {
		text = fmt.Sprintf("%d-%s", s/(24*3600), text)
	}
	return text
}

func clock(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("Mon Jan 2, 2006 at 15:04:05 MST")
}

// plural is "1 GPU", "3 GPUs".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// cells is the width of a meter.
const cells = 50

// meter is jobstats': a bar with the number inside its right end.
func meter(v gpu.Opt[float64], why string) string {
	x, ok := v.Get()
	if !ok {
		return "[" + center("unknown: "+why, cells) + "]"
	}
	number := percent(x)
	n := min(int(math.Round(x*cells)), cells)
	bar := strings.Repeat("|", min(n, cells-len(number)))
	return "[" + bar + strings.Repeat(" ", cells-len(bar)-len(number)) + number + "]"
}

func center(s string, width int) string {
	free := max(width-len([]rune(s)), 0)
	return strings.Repeat(" ", free/2) + s + strings.Repeat(" ", free-free/2)
}

// wrap breaks text at blanks to lines of at most width, each after the first
// indented.
func wrap(text, first, indent string, width int) string {
	var b strings.Builder
	line := first
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > width {
			b.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
	return b.String()
}
