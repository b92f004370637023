package driver

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// After the deadline what lies in the pipe is read, and nothing is waited for.
func TestRestOfAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("done"); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	read := func(want string, wantErr error) {
		t.Helper()
		b := make([]byte, 10)
		n, err := rest{r}.Read(b)
		if string(b[:n]) != want || !errors.Is(err, wantErr) {
			t.Errorf("%q, %v, want %q, %v", b[:n], err, want, wantErr)
		}
	}
	read("done", nil)
	read("", os.ErrDeadlineExceeded)
	w.Close()
	read("", io.EOF)
}
