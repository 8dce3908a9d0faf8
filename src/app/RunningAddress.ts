/**
 * The public URL of the running deployment, for commands on the same machine: the file `address` in `DATA_DIR`. The service writes it at the start
 * and at a reload that changes it, and deletes it at the stop. After a kill it still names the last URL.
 */
import { Effect } from "effect"
import type { Scope } from "effect"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { EnvironmentFacts } from "./Environment.ts"

type Folder = Pick<EnvironmentFacts, "data_dir">

const fileIn = ({ data_dir }: Folder): string => join(data_dir, "address")

/** Stores the URL until the scope closes, and answers how to store another. If the disk cannot be written, the service still starts. */
export const note = (facts: Folder, url: string): Effect.Effect<(url: string) => void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const store = (url: string): void => {
        try {
          writeFileSync(fileIn(facts), `${url}\n`, { mode: 0o600 })
        } catch {
          // Commands then use the configured host and port.
        }
      }
      store(url)
      return store
    }),
    () => Effect.sync(() => rmSync(fileIn(facts), { force: true }))
  )

/** `undefined` if no deployment of this folder has stored its URL. */
export const find = (facts: Folder): Effect.Effect<string | undefined> =>
  Effect.sync(() => {
    try {
      const text = readFileSync(fileIn(facts), "utf8").trim()
      return URL.canParse(text) ? text : undefined
    } catch {
      return undefined
    }
  })
