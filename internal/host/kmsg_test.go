package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var boot = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// logFile makes a root whose dev/kmsg holds the text, and opens its log.
func logFile(t testing.TB, text string) (*KernelLog, string) {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, "dev/kmsg")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := OpenKernelLog(NewFS(root), boot)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, path
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// all reads to the end: the texts, "lost N" for an overrun.
func all(t *testing.T, l *KernelLog) []string {
	t.Helper()
	var out []string
	for {
		r, err := l.Next()
		var o *Overrun
		switch {
		case errors.Is(err, io.EOF):
			return out
		case errors.As(err, &o):
			out = append(out, fmt.Sprintf("lost %d", o.Lost))
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, r.Text)
		}
	}
}

func TestKernelLog(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"two", "6,0,5,-;a\n4,1,6,-,caller=T5;b\n", []string{"a", "b"}},
		{"text with semicolons", "6,0,5,-;a;b\n", []string{"a;b"}},
		{"continuation lines are no records", "6,0,5,-;a\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:1f.3\n6,1,5,-;b\n", []string{"a", "b"}},
		{"escapes", `6,0,5,-;GPU\x0anext\x1b[2J \xc3\xa9 \x5c \xzz` + "\n", []string{"GPU\nnext\x1b[2J é \\ \\xzz"}},
		{"cut last record waits", "6,0,5,-;a\n6,1,5,-;b", []string{"a"}},
		{"rubbish between", "6,0,5,-;a\nrubbish\n6,x,5,-;no\n6,1;no\n,,,;no\n6,1,5,-;b\n", []string{"a", "b"}},
		{"gap", "6,0,5,-;a\n6,7,5,-;b\n", []string{"a", "lost 6", "b"}},
		{"begins late", "6,3,5,-;a\n", []string{"lost 3", "a"}},
		{"number too large", "6,99999999999999999999,5,-;a\n6,0,5,-;b\n", []string{"b"}},
		{"a line beyond all bounds", "6,0,5,-;" + strings.Repeat("x", 200<<10) + "\n6,1,5,-;b\n", []string{"lost 1", "b"}},
		{"no text", "6,0,5,-;\n", []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _ := logFile(t, tt.text)
			if got := all(t, l); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestKernelLogFields(t *testing.T) {
	l, _ := logFile(t, "12,0,1500000,-;user text\n")
	got, err := l.Next()
	want := KernelRecord{Seq: 0, Facility: 1, Level: 4, MonotonicUsec: 1500000, Time: boot.Add(1500 * time.Millisecond), Text: "user text"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestKernelLogGoesOn(t *testing.T) {
	l, path := logFile(t, "6,0,5,-;a\n6,1,5,-;b")
	if got := all(t, l); !reflect.DeepEqual(got, []string{"a"}) {
		t.Fatalf("first: %q", got)
	}
	add(t, path, "c\n6,2,5,-;d\n")
	if got := all(t, l); !reflect.DeepEqual(got, []string{"bc", "d"}) {
		t.Fatalf("then: %q", got)
	}
	if seq, ok := l.LastSeq(); seq != 2 || !ok {
		t.Errorf("LastSeq = %d, %v; want 2", seq, ok)
	}
}

func TestKernelLogSeekAfter(t *testing.T) {
	const text = "6,0,5,-;a\n6,1,5,-;b\n6,2,5,-;c\n"
	for seq, want := range map[uint64][]string{0: {"b", "c"}, 1: {"c"}, 2: nil, 9: nil} {
		l, _ := logFile(t, text)
		l.SeekAfter(seq)
		if got := all(t, l); !reflect.DeepEqual(got, want) {
			t.Errorf("after %d: got %q, want %q", seq, got, want)
		}
	}
	l, _ := logFile(t, "6,40,5,-;x\n")
	l.SeekAfter(9)
	if got, want := all(t, l), []string{"lost 30", "x"}; !reflect.DeepEqual(got, want) {
		t.Errorf("overwritten since: got %q, want %q", got, want)
	}
}

// A filtered record must not count as lost, and a lost one must be said even if
// nothing passes the filter.
func TestKernelLogFilter(t *testing.T) {
	l, _ := logFile(t, "6,0,5,-;a\n6,1,5,-;NVRM: x\n6,2,5,-;b\n6,9,5,-;c\n")
	l.Filter = func(b []byte) bool { return bytes.Contains(b, []byte("NVRM")) }
	if got, want := all(t, l), []string{"NVRM: x", "lost 6"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKernelLogRefusesOtherFiles(t *testing.T) {
	root := t.TempDir()
	if _, err := OpenKernelLog(NewFS(root), boot); err == nil {
		t.Error("a missing log opens")
	}
	if err := os.MkdirAll(filepath.Join(root, "dev/kmsg"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKernelLog(NewFS(root), boot); err == nil {
		t.Error("a directory opens")
	}
}

// The machine's own log has the format that the parser expects, and its numbers
// leave no gaps once reading has begun.
func TestKernelLogOfThisMachine(t *testing.T) {
	l, err := OpenKernelLog(NewFS("/"), boot)
	if err != nil {
		t.Skipf("this machine's kernel log cannot be read here: %v", err)
	}
	defer l.Close()
	n, first := 0, true
	for {
		r, err := l.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var o *Overrun
		if errors.As(err, &o) && first {
			first = false
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Time.Before(boot) {
			t.Errorf("record %d at %v, before boot", r.Seq, r.Time)
		}
		first = false
		n++
	}
	t.Logf("%d records", n)
}

func FuzzKernelRecord(f *testing.F) {
	f.Add([]byte(`6,0,5,-;a\x0a`))
	f.Add([]byte("6,339,1216354,-,caller=T5;x;y\n DEVICE=x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := ParseKernelRecord(b, boot)
		if ok && len(r.Text) > len(b) {
			t.Errorf("text of %d bytes from %d", len(r.Text), len(b))
		}
	})
}

func BenchmarkKernelLog20000(b *testing.B) {
	var text strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&text, "6,%d,%d,-;usb 1-1.4: new high-speed USB device number %d using xhci_hcd, a line like most others\n", i, i*1000, i)
	}
	_, path := logFile(b, text.String())
	root := strings.TrimSuffix(path, "dev/kmsg")
	for b.Loop() {
		l, err := OpenKernelLog(NewFS(root), boot)
		if err != nil {
			b.Fatal(err)
		}
		l.Filter = func(b []byte) bool { return bytes.Contains(b, []byte("NVRM")) }
		if _, err := l.Next(); !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		l.Close()
	}
}
