/**
 * Stores the public URL of the running deployment in the file `address` in `DATA_DIR`, for commands on the same machine. The service writes the file
 * when it starts and when a reload changes the URL, and deletes it when it stops. After the process is killed, the file still contains the last URL.
 */
import { Effect } from "effect"
import type { Scope } from "effect"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { EnvironmentFacts } from "./Environment.ts"

type Folder = Pick<EnvironmentFacts, "data_dir">

const fileIn = ({ data_dir }: Folder): string => join(data_dir, "address")

/** Stores the URL until the scope closes. Returns a function that stores another URL. Ignores disk errors, so that they do not prevent the start. */
export const note = (facts: Folder, url: string): Effect.Effect<(url: string) => void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const store = (url: string): void => {
        try {
          writeFileSync(fileIn(facts), `${url}\n`, { mode: 0o600 })
        } catch {
          // Commands then fall back to the configured host and port.
        }
      }
      store(url)
      return store
    }),
    () => Effect.sync(() => rmSync(fileIn(facts), { force: true }))
  )

/** Returns the saved URL, or `undefined` if no deployment on this folder has saved one. */
export const find = (facts: Folder): Effect.Effect<string | undefined> =>
  Effect.sync(() => {
    try {
      const text = readFileSync(fileIn(facts), "utf8").trim()
      return URL.canParse(text) ? text : undefined
    } catch {
      return undefined
    }
  })
