// Checks the test vectors of the log with Go's own implementation of signed notes and of the tree.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type receipt struct {
	Leaf       string
	Index      int64
	Proof      string
	Checkpoint string
}

type vectors struct {
	Key         string
	Empty       string
	Receipts    []receipt
	Consistency []struct {
		Old, Size int64
		Proof     string
	}
	Tiles struct {
		Size  int64
		Files map[string]string
	}
}

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func decoded(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	must(err, "base64")
	return data
}

func hashes(text string) []tlog.Hash {
	data := decoded(text)
	found := make([]tlog.Hash, len(data)/tlog.HashSize)
	for i := range found {
		copy(found[i][:], data[i*tlog.HashSize:])
	}
	return found
}

// head opens a checkpoint with the key.
func head(checkpoint string, verifier note.Verifier) (int64, tlog.Hash) {
	opened, err := note.Open([]byte(checkpoint), note.VerifierList(verifier))
	must(err, "the checkpoint")
	lines := strings.Split(opened.Text, "\n")
	if lines[0] != verifier.Name() {
		must(fmt.Errorf("%q", lines[0]), "the origin")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err, "the size")
	root, err := tlog.ParseHash(lines[2])
	must(err, "the root")
	return size, root
}

// tiles serves the tiles of the vectors to Go's reader, which authenticates them.
type tiles map[string]string

func (files tiles) Height() int                   { return 8 }
func (files tiles) SaveTiles([]tlog.Tile, [][]byte) {}
func (files tiles) ReadTiles(asked []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range asked {
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
		text, ok := files[path]
		if !ok {
			return nil, fmt.Errorf("no %s", path)
		}
		found = append(found, decoded(text))
	}
	return found, nil
}

func main() {
	data, err := os.ReadFile(os.Args[1])
	must(err, "the vectors")
	var all vectors
	must(json.Unmarshal(data, &all), "the vectors")
	verifier, err := note.NewVerifier(all.Key)
	must(err, "the key")

	if size, _ := head(all.Empty, verifier); size != 0 {
		must(fmt.Errorf("%d", size), "the empty log")
	}
	roots := map[int64]tlog.Hash{}
	for _, one := range all.Receipts {
		size, root := head(one.Checkpoint, verifier)
		roots[size] = root
		what := fmt.Sprintf("the receipt of leaf %d of %d", one.Index, size)
		must(tlog.CheckRecord(hashes(one.Proof), size, root, one.Index, tlog.RecordHash([]byte(one.Leaf))), what)
	}
	for _, one := range all.Consistency {
		what := fmt.Sprintf("the log of %d in the log of %d", one.Old, one.Size)
		must(tlog.CheckTree(hashes(one.Proof), one.Size, roots[one.Size], one.Old, roots[one.Old]), what)
	}

	// Go computes the same proofs from the tiles.
	size := all.Tiles.Size
	reader := tlog.TileHashReader(tlog.Tree{N: size, Hash: roots[size]}, tiles(all.Tiles.Files))
	for _, one := range all.Receipts {
		if found, _ := head(one.Checkpoint, verifier); found != size {
			continue
		}
		proof, err := tlog.ProveRecord(size, one.Index, reader)
		must(err, "the proof from tiles")
		var joined []byte
		for _, hash := range proof {
			joined = append(joined, hash[:]...)
		}
		if !bytes.Equal(joined, decoded(one.Proof)) {
			must(fmt.Errorf("another proof"), fmt.Sprintf("leaf %d", one.Index))
		}
	}
	fmt.Printf("%d receipts, %d consistency proofs and %d tiles agree\n", len(all.Receipts), len(all.Consistency), len(all.Tiles.Files))
}
