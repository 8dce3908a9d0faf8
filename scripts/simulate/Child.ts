/** A process that runs one story. It reads the story from standard input and writes the outcome to standard output. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Computer } from "./Computer.ts"
import { run } from "./Run.ts"
import type { Outcome } from "./Run.ts"
import type { Story } from "./Story.ts"

const write = (outcome: Outcome | { readonly broken: string }): void => {
  process.stdout.write(JSON.stringify(outcome), () => process.exit(0))
}

const main = async (folder: string): Promise<void> => {
  const text = (name: string) => readFileSync(join(folder, `${name}.js`), "utf8")
  const story = JSON.parse(readFileSync(0, "utf8")) as Story
  const names = ["library", "service", "thread"] as const
  const cacheOf = (name: string) => join(folder, `${name}.cache`)
  const compiled = Object.fromEntries(
    names.flatMap((name) => (existsSync(cacheOf(name)) ? [[name, readFileSync(cacheOf(name))]] : []))
  )
  /** Saves the compiled code of a build's first process for later processes. */
  const keep = (computer: Computer) => {
    if (names.every((name) => existsSync(cacheOf(name)))) return
    for (const [name, bytes] of Object.entries(computer.compiled())) {
      if (existsSync(cacheOf(name))) continue
      const fresh = `${cacheOf(name)}.${process.pid}`
      writeFileSync(fresh, bytes)
      renameSync(fresh, cacheOf(name))
    }
  }
  const [library, service, thread] = names.map(text) as [string, string, string]
  write(await run(story, { library, service, thread, compiled }, keep))
}

/** Reports an uncaught error, which counts as a finding. The process then ends. */
const broken = (error: unknown) => write({ broken: String(error instanceof Error ? error.stack : error) })
process.on("uncaughtException", broken)
process.on("unhandledRejection", broken)
main(process.argv[2]!).catch(broken)
