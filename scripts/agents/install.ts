// Installs the agents from the registry into a separate folder, never as dependencies.
import { execFile } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Agent } from "./agents.ts"

/** The installation timeout in milliseconds. */
const installTimeout = 300_000

const isInstalled = (folder: string, { package: name, version }: Agent): boolean => {
  const file = join(folder, "node_modules", name, "package.json")
  return (
    existsSync(file) && (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version === version
  )
}

/** Installs an agent unless this version is already installed. Returns the reason for a failure, or `undefined`. */
export const install = (folder: string, agent: Agent): Promise<string | undefined> => {
  if (isInstalled(folder, agent)) return Promise.resolve(undefined)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }))
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error"]
  return new Promise((resolve) => {
    execFile(
      "npm",
      [...args, `${agent.package}@${agent.version}`],
      { cwd: folder, timeout: installTimeout, maxBuffer: 64 * 1024 * 1024 },
      (error, _, stderr) => {
        if (error === null) return resolve(undefined)
        const said = stderr.split("\n").find((line) => /^npm error (?!code|errno|syscall)/.test(line))
        resolve(error.killed ? `timed out after ${installTimeout / 1000} s` : (said ?? `npm exited with ${error.code}`))
      }
    )
  })
}
