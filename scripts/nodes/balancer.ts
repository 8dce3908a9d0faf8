// Runs HAProxy in front of the nodes. It polls each node's /readyz, and passes a request that one node did not accept to another node.
import { spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { print } from "../bench/frame.ts"
import { freePort, sleep } from "../bench/processes.ts"

interface Node {
  readonly name: string
  readonly port: number
}

/** Builds HAProxy's configuration. The timeouts are long, because a call waits for its model. */
const configuration = (port: number, nodes: ReadonlyArray<Node>): string => `global
  maxconn 4000
defaults
  mode http
  timeout connect 1s
  timeout client 10m
  timeout server 10m
  option redispatch
  retries 3
  # A request that a node may have started is not sent again.
  retry-on conn-failure
frontend tollgate
  bind 127.0.0.1:${port}
  default_backend nodes
backend nodes
  balance leastconn
  option httpchk GET /readyz
  default-server inter 500ms fastinter 200ms fall 1 rise 1 observe layer4 error-limit 1 on-error mark-down
${nodes.map(({ name, port: own }) => `  server ${name.replace(" ", "-")} 127.0.0.1:${own} check`).join("\n")}
`

/** Starts HAProxy for the nodes and returns its port. */
export const balance = async (directory: string, nodes: ReadonlyArray<Node>): Promise<number> => {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin", "/usr/local/sbin"]
  const executable = folders.map((folder) => join(folder, "haproxy")).find((file) => existsSync(file))
  if (executable === undefined) throw new Error("HAProxy is missing (Debian: apt-get install haproxy)")
  const port = await freePort()
  const file = join(directory, "haproxy.cfg")
  writeFileSync(file, configuration(port, nodes))
  const child = spawn(executable, ["-q", "-db", "-f", file], { stdio: ["ignore", "ignore", "inherit"] })
  process.once("exit", () => child.kill("SIGKILL"))
  const isUp = async () => (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined))?.ok === true
  for (let i = 0; !(await isUp()); i++) {
    if (i === 100 || child.exitCode !== null) throw new Error("HAProxy did not start")
    await sleep(100)
  }
  print(`HAProxy polls each node's /readyz (${file})`)
  return port
}
