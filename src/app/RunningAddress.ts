/**
 * The public address of the running deployment, for commands on its machine: the file `address` in `DATA_DIR`. The service writes it when it
 * serves and deletes it when it ends. After a kill it names the last address.
 */
import { Effect } from "effect"
import type { Scope } from "effect"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { EnvironmentFacts } from "./Environment.ts"

type Folder = Pick<EnvironmentFacts, "data_dir">

const fileIn = ({ data_dir }: Folder): string => join(data_dir, "address")

/** Notes the address until the scope closes. A disk that refuses costs a command the address, not the service its start. */
export const note = (facts: Folder, url: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.ignore(Effect.try(() => writeFileSync(fileIn(facts), `${url}\n`, { mode: 0o600 }))),
    () => Effect.sync(() => rmSync(fileIn(facts), { force: true }))
  )

/** `undefined` if no deployment of this folder runs, or has noted none. */
export const find = (facts: Folder): Effect.Effect<string | undefined> =>
  Effect.sync(() => {
    try {
      const text = readFileSync(fileIn(facts), "utf8").trim()
      return URL.canParse(text) ? text : undefined
    } catch {
      return undefined
    }
  })
