/** What people install: packed, put into an empty folder with nothing but its peers, compiled under `strict`, run. */
import { execFileSync } from "node:child_process"
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freshFolder, root } from "../support/Service.ts"

let folder: string

const run = (file: string, args: ReadonlyArray<string>, cwd: string): string =>
  execFileSync(file, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

beforeAll(() => {
  folder = freshFolder()
  run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "scripts/tsconfig.package.json"], root)
  const [{ filename }] = JSON.parse(
    run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], root)
  ) as [{ filename: string }]
  run("tar", ["-xzf", filename], folder)
  // As npm would lay it out. What it depends on is linked from here: another download and another compilation would prove nothing.
  const modules = join(folder, "node_modules")
  mkdirSync(modules)
  cpSync(join(folder, "package"), join(modules, "tollgate"), { recursive: true })
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    dependencies: Record<string, string>
    peerDependencies: Record<string, string>
  }
  for (const name of [
    ...Object.keys(dependencies),
    ...Object.keys(peerDependencies),
    "@types/node",
    "@types/better-sqlite3"
  ]) {
    if (name.includes("/")) mkdirSync(join(modules, name.split("/")[0]!), { recursive: true })
    symlinkSync(join(root, "node_modules", name), join(modules, name))
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        target: "ES2022",
        lib: ["ES2023", "DOM"],
        module: "NodeNext",
        types: ["node"],
        skipLibCheck: true
      },
      files: ["ledger.ts", "mounted.ts"]
    })
  )
  for (const name of ["ledger.ts", "mounted.ts"]) copyFileSync(join(root, "test", "hosts", name), join(folder, name))
  mkdirSync(join(folder, "data"))
}, 120_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the package", () => {
  it("type-checks in its hosts under strict", () => {
    expect(run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "."], folder)).toBe("")
  }, 120_000)

  it("keeps a host's books without any HTTP, beside the host's own tables", () => {
    expect(JSON.parse(run(process.execPath, ["ledger.js"], folder))).toEqual({
      refused: "TransferInsufficientCredits",
      balances: ["6", "4"],
      findings: [],
      foreign: []
    })
  }, 60_000)

  it("mounts beneath a host's own routes, and is spoken to by the typed client", () => {
    expect(JSON.parse(run(process.execPath, ["mounted.js"], folder).trim().split("\n").at(-1)!)).toEqual({
      hello: "hello from the host",
      credits: "5000000000",
      refused: "ClientIdNotFound",
      chat: "hello there"
    })
  }, 60_000)

  it("imports without doing anything, entry by entry, and says what each is", () => {
    const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      exports: Record<string, unknown>
    }
    const entries = Object.keys(exports).filter((entry) => entry !== "./package.json")
    expect(entries.length).toBeGreaterThanOrEqual(14)
    for (const entry of entries) {
      const name = `tollgate/${entry.slice(2)}`
      const script = `const made = await import(${JSON.stringify(name)}); console.log(Object.keys(made).length > 0 ? "fine" : "empty")`
      // It ends by itself: nothing was started.
      expect([name, run(process.execPath, ["--input-type=module", "-e", script], folder)]).toEqual([name, "fine\n"])
    }
  }, 120_000)
})
