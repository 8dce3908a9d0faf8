/**
 * A deployment whose secret is lost goes on under another one: what people own stays (balances, ledger, usage, transfers, teams), and
 * what the secret protects is started over. Nobody may be serving the database.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import { codesEnd } from "./auth/Authorization.ts"
import type { Ending, Protected } from "./auth/DeploymentSecret.ts"
import { sessionsEnd } from "./auth/Sessions.ts"
import { signingKeysEnd } from "./auth/SigningKeys.ts"
import { clientTokensEnd } from "./contact/Contacts.ts"
import { Writer } from "./ledger/Writer.ts"
import { lettersEnd } from "./mail/Outbox.ts"
import { apiKeysEnd } from "./tenants/Applications.ts"
import { invitationsEnd } from "./tenants/Organisations.ts"
import { transferLinksEnd } from "./transfers/Transfers.ts"

/** What becomes of all that the secret stands behind. `undefined`: nothing of it is stored. */
const endings: Record<Protected, Ending | undefined> = {
  api_key: apiKeysEnd,
  refresh_token: sessionsEnd,
  signing_key: signingKeysEnd,
  authorization_code: codesEnd,
  tenant_invite: invitationsEnd,
  transfer_invite: transferLinksEnd,
  client_token: clientTokensEnd,
  letter: lettersEnd,
  browser: undefined
}

const stored = Object.values(endings).filter((ending) => ending !== undefined)

/** What it does, a line for each kind of thing that there is. */
export const plan: Effect.Effect<ReadonlyArray<string>, never, SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient
  const now = yield* Clock.currentTimeMillis
  const lines = yield* Effect.forEach(stored, ({ count, told }) =>
    Effect.map(count(sql, now), ([row]) => ((row?.n ?? 0) === 0 ? [] : [told(row!.n)]))
  )
  return lines.flat()
}).pipe(Effect.orDie)

/** Does it, all of it or nothing. */
export const run = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const now = yield* Clock.currentTimeMillis
  const statements = stored.flatMap((ending) => ending.statements(sql, now))
  yield* writer.submit({ postings: [], statements })
})
