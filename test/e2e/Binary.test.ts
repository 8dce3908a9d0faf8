/** The one executable: built from the registry alone, run where there is nothing but itself and the C libraries. */
import { execFile, execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  chownSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freePort, freshFolder, root } from "../support/Service.ts"

/** Who the container runs as. */
const user = 10_001

const binaryOf = (arch: string) => join(root, "out", `tollgate-linux-${arch}`)
const binary = binaryOf(process.arch)

beforeAll(async () => {
  const args = ["--import", "tsx", "scripts/binary.ts", "--arch", "x64", "--arch", "arm64"]
  // It takes as long as the worker may say nothing to the test runner, which a call that blocks would keep it from.
  await promisify(execFile)(process.execPath, args, { cwd: root })
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
    const takesBrotli = { headers: { "accept-encoding": "br" } }
    const page = await fetch(`${second.url}/console/`, takesBrotli)
    expect([page.status, page.headers.get("content-encoding")]).toEqual([200, "br"])
    const [, script] = /src="\.?\/?(assets\/[^"]+\.js)"/.exec(await page.text())!
    const loaded = await fetch(`${second.url}/console/${script}`, takesBrotli)
    expect([loaded.status, loaded.headers.get("content-encoding")]).toEqual([200, "br"])
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
    const models = execFileSync(binary, ["models", "--search", "openai/gpt-4.1"], { env: {}, encoding: "utf8" })
    expect(models).toMatch(/^openai\/gpt-4\.1 /m)
    expect(() => execFileSync(binary, ["serve"], { env: { PORT: "many" }, stdio: "pipe" })).toThrow(/PORT/)
  })

  it.skipIf(process.getuid?.() !== 0)(
    "runs in the root that the container file makes, as its user, without HOME",
    async () => {
      const bare = join(folder(), "root")
      execFileSync("sh", ["scripts/deploy/root.sh", binary, bare], { cwd: root })
      chmodSync(dirname(bare), 0o755)
      chownSync(join(bare, "data"), user, user)
      const files = (readdirSync(bare, { recursive: true }) as Array<string>).filter((name) =>
        lstatSync(join(bare, name)).isFile()
      )
      const named = [...execFileSync("ldd", [binary], { encoding: "utf8" }).matchAll(/\/(\S+\.so[\d.]*)/g)]
      const libraries = named.map(([, library]) => library)
      expect(files.toSorted()).toEqual([...libraries, "tollgate", "etc/passwd", "etc/nsswitch.conf"].toSorted())

      const inside = ["/usr/sbin/chroot", [`--userspec=${user}:${user}`, bare, "/tollgate"]] as const
      const service = await run(...inside, "/data")
      expect(await call(service, keyIn(service.text()))).toEqual([200, "hello there"])
      const asked = { env: { PORT: new URL(service.url).port, HOST: "0.0.0.0" }, encoding: "utf8" } as const
      expect(execFileSync(inside[0], [...inside[1], "health"], asked)).toContain("returned 200")
      expect(await service.end("SIGTERM")).toBe(0)
      expect(() => execFileSync(inside[0], [...inside[1], "health"], { ...asked, stdio: "pipe" })).toThrow(
        /cannot connect to/
      )
      expect(lstatSync(join(bare, "data", "tollgate.db")).uid).toBe(user)
      expect(readdirSync(bare).toSorted()).toEqual(expect.arrayContaining(["data", "tollgate"]))

      // A folder that root has restored into is the user's, driver and all.
      const restored = join(bare, "restored")
      mkdirSync(restored, { mode: 0o700 })
      chownSync(restored, user, user)
      const from = join(folder(), "backup.db")
      execFileSync(binary, ["backup", "--to", from], { env: { DATA_DIR: join(bare, "data") } })
      execFileSync(binary, ["restore", "--from", from], { env: { DATA_DIR: restored } })
      copyFileSync(join(bare, "data", "secret"), join(restored, "secret"))
      chownSync(join(restored, "secret"), user, user)
      const again = await run(...inside, "/restored")
      expect(await again.end("SIGTERM")).toBe(0)
    }
  )

  it("has a container file that takes into the build what it copies, and runs without root", () => {
    const text = readFileSync(join(root, "scripts", "deploy", "Containerfile"), "utf8")
    const [first, ...allowed] = readFileSync(join(root, ".dockerignore"), "utf8")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
    expect(first).toBe("*")
    const copied = [...text.matchAll(/^COPY (?!--from)(\S+)/gm)].map(([, source]) => source!.replace("${ARCH}", "*"))
    expect(allowed.toSorted()).toEqual(copied.map((source) => `!${source}`).toSorted())
    expect(text).toMatch(new RegExp(`^USER ${user}:${user}$`, "m"))
    expect(text).toContain(`--chown=${user}:${user} `)
    expect(text).not.toContain("/lib ")
  })

  it("has a compose file that fits the container, its proxy and what it tells people to write", () => {
    const textOf = (name: string) => readFileSync(join(root, "scripts", "deploy", name), "utf8")
    const [compose, container, proxy] = [textOf("compose.yaml"), textOf("Containerfile"), textOf("Caddyfile")]
    const [head] = compose.split("\nservices:")
    const port = /^EXPOSE (\d+)$/m.exec(container)![1]!
    expect(proxy).toContain(`reverse_proxy tollgate:${port} {`)
    const config = /"--config", "([^"]+)"/.exec(container)![1]!
    expect(compose).toContain(`./config.json:${config}:ro`)
    expect(compose).toContain(`"/data:uid=${user},gid=${user},mode=0700"`)
    expect(compose).toMatch(/\.\/Caddyfile:\/etc\/caddy\/Caddyfile:ro/)
    // Compose refuses to start without a variable, and the head names each.
    const variables = [...compose.matchAll(/\$\{(\w+)(:\?)?/g)]
    expect(new Set(variables.map(([, name]) => name))).toEqual(
      new Set(["DOMAIN", "POSTGRES_PASSWORD", "TOLLGATE_SECRET"])
    )
    for (const [, name, isRequired] of variables) {
      expect([name, isRequired]).toEqual([name, ":?"])
      expect(head).toContain(`${name}=`)
    }
  })

  it("has the same bytes in each reproducible build", async () => {
    const built = async (): Promise<Buffer> => {
      const out = folder()
      const args = ["--import", "tsx", "scripts/binary.ts", "--reproducible", "--out", out]
      await promisify(execFile)(process.execPath, args, { cwd: root })
      const file = join(out, basename(binary))
      expect(execFileSync(file, ["--version"], { env: {}, encoding: "utf8" })).toMatch(/\d+\.\d+\.\d+/)
      return readFileSync(file)
    }
    const first = await built()
    // Not `toEqual`, which would print a hundred megabytes.
    expect(first.equals(await built())).toBe(true)
  }, 300_000)

  it("is built for the other architecture too", () => {
    // Where an ELF file says which machine it is for: 0xB7 is AArch64, 0x3E is x86-64.
    const machine = (file: string) => readFileSync(file).readUInt16LE(18)
    expect([machine(binaryOf("x64")), machine(binaryOf("arm64"))]).toEqual([0x3e, 0xb7])
  })
})
