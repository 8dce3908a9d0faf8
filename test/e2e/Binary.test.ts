/** The one executable: built from the registry alone, run where there is nothing but itself and the C libraries. */
import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freePort, freshFolder, root } from "../support/Service.ts"

const binaryOf = (arch: string) => join(root, "out", `tollgate-linux-${arch}`)
const binary = binaryOf(process.arch)

beforeAll(() => {
  for (const arch of ["x64", "arm64"]) {
    execFileSync(process.execPath, ["--import", "tsx", "scripts/binary.ts", "--arch", arch], {
      cwd: root,
      stdio: "pipe"
    })
  }
}, 300_000)

const folders: Array<string> = []
const folder = () => {
  const made = freshFolder()
  folders.push(made)
  return made
}
afterAll(() => {
  for (const one of folders) rmSync(one, { recursive: true, force: true })
})

interface Running {
  readonly url: string
  readonly text: () => string
  readonly end: (signal: NodeJS.Signals) => Promise<number | NodeJS.Signals | null>
}

/** Runs a command that serves, with nothing in its environment but what is given. */
const run = async (file: string, args: ReadonlyArray<string>, DATA_DIR: string): Promise<Running> => {
  const PORT = String(await freePort())
  const child = spawn(file, [...args, "serve"], { env: { PORT, DATA_DIR }, stdio: ["ignore", "pipe", "pipe"] })
  let text = ""
  child.stdout.setEncoding("utf8").on("data", (more: string) => (text += more))
  child.stderr.setEncoding("utf8").on("data", (more: string) => (text += more))
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? signal))
  })
  while (!text.includes("/v1/usage")) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${text}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return {
    url: `http://127.0.0.1:${PORT}`,
    text: () => text,
    end: (signal) => {
      child.kill(signal)
      return ended
    }
  }
}

const keyIn = (text: string): string => /svc-prod-[0-9a-f]{64}/.exec(text)![0]

const call = async ({ url }: Running, key: string) => {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "auto", messages: [{ role: "user", content: "hello there" }] })
  })
  return [
    response.status,
    ((await response.json()) as { choices: [{ message: { content: string } }] }).choices[0].message.content
  ]
}

const requests = async ({ url }: Running, key: string): Promise<number> => {
  const response = await fetch(`${url}/v1/usage`, { headers: { authorization: `Bearer ${key}` } })
  return ((await response.json()) as { total_requests: number }).total_requests
}

describe("the executable", () => {
  it("answers the sandbox's first call, again after a restart and a kill, and drains at SIGTERM", async () => {
    const data = folder()
    const first = await run(binary, [], data)
    const key = keyIn(first.text())
    expect(await call(first, key)).toEqual([200, "hello there"])
    expect(await first.end("SIGKILL")).toBe("SIGKILL")
    const second = await run(binary, [], data)
    expect(await call(second, key)).toEqual([200, "hello there"])
    expect(await requests(second, key)).toBe(2)
    expect((await fetch(`${second.url}/docs`)).status).toBe(200)
    expect(await second.end("SIGTERM")).toBe(0)
    const verified = execFileSync(binary, ["verify"], { env: { DATA_DIR: data }, encoding: "utf8" })
    expect(verified).toContain("every invariant of the books holds")
  })

  it("loads its driver only if it is what was put there", async () => {
    const data = folder()
    await (await run(binary, [], data)).end("SIGTERM")
    const [name = ""] = readdirSync(join(data, "native"))
    const path = join(data, "native", name)
    const good = readFileSync(path)
    chmodSync(path, 0o700)
    writeFileSync(path, Buffer.concat([good.subarray(0, good.length - 1), Buffer.from([0xff])]))
    await (await run(binary, [], data)).end("SIGTERM")
    expect(readFileSync(path).equals(good)).toBe(true)
  })

  it("says what it can do, and names what is wrong, like the service from its source", () => {
    expect(execFileSync(binary, ["--version"], { env: {}, encoding: "utf8" })).toMatch(/\d+\.\d+\.\d+/)
    expect(execFileSync(binary, ["--help"], { env: {}, encoding: "utf8" })).toContain("serve")
    expect(() => execFileSync(binary, ["serve"], { env: { PORT: "many" }, stdio: "pipe" })).toThrow(/PORT/)
  })

  it.skipIf(process.getuid?.() !== 0)(
    "runs in an empty root that holds only the C and C++ libraries, without HOME",
    async () => {
      const bare = folder()
      const libraries = execFileSync("ldd", [binary], { encoding: "utf8" }).matchAll(/(\/\S+\.so[\d.]*)/g)
      for (const [, library] of libraries) {
        mkdirSync(join(bare, dirname(library!)), { recursive: true })
        copyFileSync(library!, join(bare, library!))
      }
      copyFileSync(binary, join(bare, "tollgate"))
      mkdirSync(join(bare, "data"))
      const service = await run("/usr/sbin/chroot", [bare, "/tollgate"], "/data")
      expect(await call(service, keyIn(service.text()))).toEqual([200, "hello there"])
      expect(await service.end("SIGTERM")).toBe(0)
      expect(existsSync(join(bare, "data", "tollgate.db"))).toBe(true)
      expect(readdirSync(bare).toSorted()).toEqual(expect.arrayContaining(["data", "tollgate"]))
    }
  )

  it("is built for the other architecture too", () => {
    // Where an ELF file says which machine it is for: 0xB7 is AArch64, 0x3E is x86-64.
    const machine = (file: string) => readFileSync(file).readUInt16LE(18)
    expect([machine(binaryOf("x64")), machine(binaryOf("arm64"))]).toEqual([0x3e, 0xb7])
  })
})
