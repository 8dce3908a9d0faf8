/** Go's `sumdb/note` and `sumdb/tlog` agree with the published vectors. Needs Go (on Debian: `apt-get install golang-go`), and no network. */
import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"

const hasGo = spawnSync("go", ["version"]).status === 0
if (!hasGo) console.warn("Go is not installed, so the vectors of the log are not checked with it")

describe.skipIf(!hasGo)("Go", () => {
  it("reads keys, checkpoints, tiles and proofs as this code writes them", () => {
    const folder = mkdtempSync(join(tmpdir(), "log-go-"))
    try {
      // Go brings these packages for its own use. Its newer versions need no ed25519 outside of the standard library.
      const root = execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim()
      const vendored = join(root, "src", "cmd", "vendor", "golang.org", "x")
      for (const name of ["mod/sumdb/note", "mod/sumdb/tlog", "crypto/ed25519"]) {
        if (!existsSync(join(vendored, name))) continue
        cpSync(join(vendored, name), join(folder, "src", "golang.org", "x", name), {
          recursive: true,
          dereference: true
        })
      }
      cpSync(join(import.meta.dirname, "go"), join(folder, "src", "vectors"), { recursive: true })
      const env = {
        ...process.env,
        GO111MODULE: "off",
        GOPATH: folder,
        GOCACHE: join(folder, "cache"),
        GOFLAGS: "",
        CGO_ENABLED: "0"
      }
      const run = (file: string) =>
        spawnSync("go", ["run", "vectors", file], { cwd: folder, env, encoding: "utf8", timeout: 600_000 })
      const { status, stderr, stdout } = run(join(import.meta.dirname, "vectors", "log.json"))
      expect([status, stderr]).toEqual([0, ""])
      expect(stdout).toMatch(/^\d+ receipts, 8 consistency proofs and 5 tiles agree\n$/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
