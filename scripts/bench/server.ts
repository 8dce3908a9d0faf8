// A part's PostgreSQL server: its databases, and its processes' CPU time.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { Client } from "pg"
import type { Server } from "../../test/support/postgres.ts"
import { cpu } from "./processes.ts"

/** Creates a database and returns its URL. */
export const createDatabase = async ({ url }: Server, name: string): Promise<string> => {
  const client = new Client(url)
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  return url.replace(/postgres$/, name)
}

/** Returns the CPU time of all server processes so far, in µs. */
export const serverCpu = (server: Server): number => {
  const main = server.pid()
  const childrenOf = readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name) || !existsSync(`/proc/${name}/stat`)) return false
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${name}/stat`, "utf8"))?.[1]) === main
  })
  return [main, ...childrenOf.map(Number)].reduce((sum, pid) => sum + cpu(pid), endedCpu(main))
}

/** Returns the CPU time of a process's children that have exited, in µs. */
const endedCpu = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")
  return (Number(fields[13]) + Number(fields[14])) * 10_000
}
