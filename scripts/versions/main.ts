/**
 * `npm run test:nodes [-- VERSION ...]` checks this checkout on other versions of Node.js, on Linux. Without a version, it checks the oldest that
 * `engines` permits and the newest of each supported line. Each version gets a copy of the checkout in `.nodes/`, with its own SQLite driver, which is
 * compiled there once. The packages are hard links. In each copy, the script builds `dist/`, does the README's first steps, and runs some tests. It
 * prints one line per step, and exits with 1 if a step fails.
 */
import { execFileSync, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { root } from "../bundle.ts"
import { fetched, nodeVersion } from "../packages.ts"
import { freePort } from "../bench/processes.ts"

const versions = ["20.12.2", "22.23.3", nodeVersion, "26.10.0"]

/** Tests of features that differ between versions: the driver, threads, HTTP, streams, cryptography, dates and processes. */
const tests = [
  "test/bundle.test.ts",
  "test/storage/Lock",
  "test/books/ledger/Batch.test.ts",
  "test/books/ledger/Writer.test.ts",
  "test/http/Bodies.test.ts",
  "test/http/Bytes.test.ts",
  "test/http/EventStream.test.ts",
  "test/http/Listener.test.ts",
  "test/calls/chat/LongAnswers.test.ts",
  "test/calls/chat/Relay.test.ts",
  "test/calls/chat/Upstream.test.ts",
  "test/protocols/Answers.test.ts",
  "test/upstream/ByteStream.test.ts",
  "test/upstream/Credential.test.ts",
  "test/upstream/Wire.test.ts",
  "test/people/auth/SigningKeys.test.ts",
  "test/e2e/OpenAi.test.ts",
  "test/e2e/Process.test.ts"
]

/** The step timeout in milliseconds. On an idle machine, no step takes a minute. */
const stepMax = 900_000

interface Copy {
  readonly folder: string
  readonly node: string
  readonly env: NodeJS.ProcessEnv
}

const hashOf = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex")

/** Links this checkout's packages and compiles the SQLite driver for the version, unless already done for the same lockfile. */
const install = (folder: string, version: string, headers: string): void => {
  const stamp = join(folder, "installed")
  const lockfile = hashOf(join(root, "package-lock.json"))
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lockfile) return
  const gyp = process.env["npm_config_node_gyp"]
  if (gyp === undefined) throw new Error("npm must start this script: npm run test:nodes")
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const modules = join(folder, "node_modules")
  execFileSync("cp", ["-al", join(root, "node_modules"), modules])
  // Remove caches, because writing them in place would change the linked originals too.
  for (const name of [".cache", ".vite", ".vitest", "better-sqlite3/build"])
    rmSync(join(modules, name), { recursive: true, force: true })
  console.log(`compiling the SQLite driver for Node.js ${version}`)
  execFileSync(process.execPath, [gyp, "rebuild", "--release", `--target=${version}`, `--nodedir=${headers}`], {
    cwd: join(modules, "better-sqlite3"),
    stdio: ["ignore", "ignore", "pipe"]
  })
  writeFileSync(stamp, lockfile)
}

/** Copies this checkout's current files, except those that git ignores. */
const copySources = (folder: string): void => {
  for (const name of ["src", "test", "scripts", "dist", "data"])
    rmSync(join(folder, name), { recursive: true, force: true })
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024
  })
  for (const name of listed.split("\0").filter((name) => name !== "" && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    copyFileSync(join(root, name), join(folder, name))
  }
}

const copyOf = (version: string): Copy => {
  const runtime = fetched(`node-linux-${process.arch}@${version}`)
  const folder = join(root, ".nodes", version)
  install(folder, version, runtime)
  copySources(folder)
  const path = [join(runtime, "bin"), join(folder, "node_modules", ".bin"), process.env["PATH"]].join(":")
  const env = { ...process.env, PATH: path, NODE_OPTIONS: "", FC_RUNS: "0.2" }
  return { folder, node: join(runtime, "bin", "node"), env }
}

/** Runs a command in the copy and returns its standard output. If it fails, throws an error with the last 4,000 characters of output. */
const run = (copy: Copy, command: string, args: ReadonlyArray<string>): string => {
  try {
    return execFileSync(command, args, {
      cwd: copy.folder,
      env: copy.env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      maxBuffer: 64 * 1024 * 1024,
      timeout: stepMax
    })
  } catch (error) {
    const { stderr = "", stdout = "" } = error as { readonly stdout?: string; readonly stderr?: string }
    throw new Error(`${command} ${args.join(" ")}\n${(stdout + stderr).slice(-4_000)}`, { cause: error })
  }
}

/** Runs `npm start`'s command on an empty folder and then each `curl` command that it prints. The service must exit with 0. */
const firstSteps = async (copy: Copy): Promise<void> => {
  const { start } = (
    JSON.parse(readFileSync(join(copy.folder, "package.json"), "utf8")) as { scripts: { start: string } }
  ).scripts
  const data = mkdtempSync(join(tmpdir(), "tollgate-"))
  const service = spawn("sh", ["-c", start], {
    cwd: copy.folder,
    env: { ...copy.env, PORT: String(await freePort()), DATA_DIR: data },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let said = ""
  for (const stream of [service.stdout, service.stderr]) stream.on("data", (text) => (said += String(text)))
  const ended = new Promise<number | null>((resolve) => service.once("exit", resolve))
  const deadline = setTimeout(() => service.kill("SIGKILL"), 60_000)
  try {
    while (!said.includes("/v1/usage") && service.exitCode === null && service.signalCode === null)
      await new Promise((resolve) => setTimeout(resolve, 20))
    const lines = said.split("\n").map((line) => line.trim())
    const calls = lines.filter((line) => line.startsWith("curl "))
    if (calls.length < 2) throw new Error(`${start}\n${said.slice(-4_000)}`)
    const answers = calls.map((line) => execFileSync("sh", ["-c", `${line} -s`], { encoding: "utf8", timeout: 20_000 }))
    if (!answers.at(-1)!.includes('"total_requests":1'))
      throw new Error(`the first call was not counted: ${answers.join("\n")}`)
    service.kill("SIGTERM")
    const code = await ended
    if (code !== 0) throw new Error(`${start} ended with ${code}\n${said.slice(-4_000)}`)
  } finally {
    clearTimeout(deadline)
    service.kill("SIGKILL")
    rmSync(data, { recursive: true, force: true })
  }
}

const steps: ReadonlyArray<readonly [name: string, step: (copy: Copy) => unknown]> = [
  ["builds", (copy) => run(copy, copy.node, ["--import", "tsx", "scripts/build.ts"])],
  ["first steps", firstSteps],
  ["tests", (copy) => run(copy, copy.node, ["node_modules/vitest/vitest.mjs", "run", "--project", "sqlite", ...tests])]
]

if (process.platform !== "linux")
  throw new Error("test:nodes runs on Linux only, because the packages of Node.js are for it")
const requestedVersions = process.argv.slice(2)
let failures = 0
for (const version of requestedVersions.length > 0 ? requestedVersions : versions) {
  let copy: Copy
  try {
    copy = copyOf(version)
  } catch (error) {
    failures++
    console.log(`${version.padEnd(8)} cannot be installed: ${error instanceof Error ? error.message : String(error)}`)
    continue
  }
  for (const [name, step] of steps) {
    const began = performance.now()
    const why = await Promise.resolve()
      .then(() => step(copy))
      .then(
        () => undefined,
        (error: Error) => error.message
      )
    const took = `${((performance.now() - began) / 1_000).toFixed(0)} s`
    console.log(`${version.padEnd(8)} ${name.padEnd(12)} ${why === undefined ? "ok" : "FAILED"} (${took})`)
    if (why === undefined) continue
    failures++
    console.log(why)
  }
}
if (failures > 0) process.exitCode = 1
