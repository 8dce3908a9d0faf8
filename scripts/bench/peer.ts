// The peer: `@portkey-ai/gateway`. It relays requests without metering. The benchmark installs it on demand into a separate folder, because it is not
// a dependency.
import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Target } from "./frame.ts"
import { freePort, root, sleep, start, stop, tail } from "./processes.ts"
import type { Cores } from "./processes.ts"

const name = "@portkey-ai/gateway"
const range = "~1.15.2"
const folder = join(root, ".bench", "peer")
const installed = join(folder, "node_modules", "@portkey-ai", "gateway")

/** Installs the peer if it is missing, and returns its version. Throws if the installation fails. */
const install = async (): Promise<string> => {
  const main = join(installed, "build", "start-server.js")
  if (!existsSync(main)) {
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, "package.json"), JSON.stringify({ private: true }))
    await promisify(execFile)(
      "npm",
      ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", `${name}@${range}`],
      { cwd: folder, timeout: 120_000 }
    )
  }
  return (JSON.parse(await readFile(join(installed, "package.json"), "utf8")) as { readonly version: string }).version
}

export interface Peer extends Target {
  readonly version: string
  readonly stop: () => Promise<void>
}

export const startPeer = async (cores: Cores, upstream: number): Promise<Peer> => {
  const version = await install()
  const port = await freePort()
  const child = start(cores.served, [join(installed, "build", "start-server.js"), `--port=${port}`, "--headless"], {
    env: { NODE_ENV: "production" },
    ipc: false
  })
  const said = tail(child)
  const ready = async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))?.ok === true
  for (const deadline = Date.now() + 15_000; !(await ready()); await sleep(100)) {
    if (child.exitCode === null && Date.now() < deadline) continue
    await stop(child)
    throw new Error(`it did not start: ${said()}`)
  }
  return {
    name: "peer",
    version,
    port,
    pid: child.pid!,
    keys: ["upstream-key"],
    headers: {
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${upstream}/v1`
    },
    stop: () => stop(child)
  }
}
