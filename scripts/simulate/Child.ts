/** A process that runs one story, since time and chance are replaced in it for good. Reads the story from its input, writes its outcome. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { run } from "./Run.ts"
import type { Outcome } from "./Run.ts"
import type { Story } from "./Story.ts"

const write = (outcome: Outcome | { readonly broken: string }): void => {
  process.stdout.write(JSON.stringify(outcome), () => process.exit(0))
}

const main = async (folder: string): Promise<void> => {
  const text = (name: string) => readFileSync(join(folder, `${name}.js`), "utf8")
  const story = JSON.parse(readFileSync(0, "utf8")) as Story
  write(await run(story, { service: text("service"), thread: text("thread") }))
}

/** A defect of the service ends a process: so it does here, as a finding. */
const broken = (error: unknown) => write({ broken: String(error instanceof Error ? error.stack : error) })
process.on("uncaughtException", broken)
process.on("unhandledRejection", broken)
main(process.argv[2]!).catch(broken)
