package sim

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed c
var sources embed.FS

// symbolList names every function that go-nvml refers to, and those that other
// clients use, one a line.
//
//go:embed symbols.txt
var symbolList string

const (
	libraryName = "libnvidia-ml.so.1"
	objectName  = "libnvidia-ml.o" // what the libraries of all driver branches are linked from
	toolName    = "gpu-sim"
)

// Build puts libnvidia-ml.so.1, its link libnvidia-ml.so and the tool gpu-sim
// into dir. It compiles them with gcc against go-nvml's nvml.h unless the same
// sources have been compiled before on this machine.
func Build(dir string) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(cache); errors.Is(err, fs.ErrNotExist) {
		if err := compile(cache); err != nil {
			return err
		}
	}
	for _, name := range []string{libraryName, toolName} {
		if err := linkOrCopy(filepath.Join(cache, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, "libnvidia-ml.so") // what slurmd before 24.05 opens
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(libraryName, link)
}

// headerDir finds nvml.h in the module cache.
func headerDir() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return "", fmt.Errorf("find go-nvml in the module cache: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "pkg", "nvml"), nil
}

// cacheDir is where a build of exactly these sources lies or will lie.
func cacheDir() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, symbolList, keyTable)
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(path)
		fmt.Fprintf(h, "%s\n%s", path, text)
		return err
	})
	if err != nil {
		return "", err
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "gpuhooks-sim", hex.EncodeToString(h.Sum(nil)[:12])), nil
}

// compile builds aside and renames, so that two builds at once do not meet.
func compile(cache string) error {
	header, err := headerDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(cache), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(cache), ".build-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, sources); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "keys.inc"), []byte(keysForC()), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "stubs.c"), []byte(stubsForC()), 0o644); err != nil {
		return err
	}
	if err := compileAll(work, header); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	if err := os.Rename(work, cache); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(cache); there != nil {
			return err
		}
	}
	return nil
}

// compileAll compiles the library and the tool, each as one file that includes
// the others: reading nvml.h takes longer than compiling all of them.
func compileAll(work, header string) error {
	flags := []string{"-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror",
		"-Wno-missing-field-initializers", "-Wno-deprecated-declarations", "-I.", "-Ic/common", "-I" + header}
	for name, dirs := range map[string][]string{"library.c": {"common", "nvml"}, "tool.c": {"common", "tool"}} {
		var all strings.Builder
		for _, dir := range dirs {
			files, err := sources.ReadDir("c/" + dir)
			if err != nil {
				return err
			}
			for _, f := range files {
				if strings.HasSuffix(f.Name(), ".c") {
					fmt.Fprintf(&all, "#include \"c/%s/%s\"\n", dir, f.Name())
				}
			}
		}
		if err := os.WriteFile(filepath.Join(work, name), []byte(all.String()), 0o644); err != nil {
			return err
		}
	}
	var object, tool error
	done := make(chan bool)
	go func() {
		tool = gcc(work, slices.Concat(flags, []string{"-o", toolName, "tool.c", "-lpthread", "-lm"})...)
		close(done)
	}()
	object = gcc(work, slices.Concat(flags, []string{"-r", "-o", objectName, "library.c", "stubs.c"})...)
	<-done
	if err := errors.Join(object, tool); err != nil {
		return err
	}
	return link(work, filepath.Join(work, objectName), libraryName)
}

func link(work, object, output string, more ...string) error {
	args := []string{"-shared", "-Wl,-soname," + libraryName, "-o", output, object, "-ldl", "-lpthread", "-lm"}
	return gcc(work, append(args, more...)...)
}

func gcc(work string, args ...string) error {
	cmd := exec.Command("gcc", args...)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc %s: %w\n%s", args[len(args)-1], err, out)
	}
	return nil
}

// stubsForC defines every symbol weakly, so that a file that models a function
// replaces its stub.
func stubsForC() string {
	var b strings.Builder
	b.WriteString("int unmodelled(const char *);\n")
	for _, name := range Symbols() {
		fmt.Fprintf(&b, "__attribute__((weak)) int %s(void) { return unmodelled(%q); }\n", name, name)
	}
	return b.String()
}

// Symbols returns the names that the library exports.
func Symbols() []string { return strings.Fields(symbolList) }

func linkOrCopy(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
