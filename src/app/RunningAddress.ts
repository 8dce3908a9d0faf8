/**
 * The public URL of the running deployment, for commands on the same machine. The service writes it to the file `address` in `DATA_DIR` at startup
 * and deletes the file at shutdown. After a kill, the file still has the last URL.
 */
import { Effect } from "effect"
import type { Scope } from "effect"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { EnvironmentFacts } from "./Environment.ts"

type Folder = Pick<EnvironmentFacts, "data_dir">

const fileIn = ({ data_dir }: Folder): string => join(data_dir, "address")

/** Stores the URL until the scope closes. A write error does not prevent the start. */
export const note = (facts: Folder, url: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.ignore(Effect.try(() => writeFileSync(fileIn(facts), `${url}\n`, { mode: 0o600 }))),
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
