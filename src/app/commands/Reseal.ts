/**
 * `tollgate reseal`: lets a deployment continue under a new secret after the old one was lost. It keeps balances, ledgers, usage, transfers and
 * teams, but invalidates everything that the old secret protected. The service must be stopped first.
 */
import { Command, Options } from "@effect/cli"
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Console, Effect, Layer } from "effect"
import { codesEnd } from "../../people/auth/Codes.ts"
import { linksEnd } from "../../people/auth/Links.ts"
import { devicesEnd } from "../../people/auth/Devices.ts"
import type { Protected } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"
import { sessionsEnd } from "../../people/auth/Sessions.ts"
import { signingKeysEnd } from "../../people/auth/SigningKeys.ts"
import { clientTokensEnd } from "../../people/auth/ClientTokens.ts"
import { logKeysEnd } from "../../books/log/ChargeLog.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import { lettersEnd } from "../../people/mail/Outbox.ts"
import { operatorSessionsEnd } from "../../operations/operator/Sessions.ts"
import { runKeysEnd } from "../../people/runs/RunRow.ts"
import { apiKeysEnd } from "../../people/tenants/Applications.ts"
import { invitationsEnd } from "../../people/tenants/Invites.ts"
import { transferLinksEnd } from "../../money/transfers/Transfers.ts"
import { SigningKeys } from "../../people/auth/SigningKeys.ts"
import { managementKeysEnd } from "../../operations/operator/ManagementKeys.ts"
import * as DataFolder from "../DataFolder.ts"
import * as Database from "../entry/database.ts"
import * as Secret from "../Secret.ts"
import * as Backup from "../../books/copies/Backup.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import type { Location } from "../../storage/database/Location.ts"
import { audited } from "./Audited.ts"
import { fromEnvironment, refuse } from "./Report.ts"

/** How each kind of protected value is invalidated; `undefined` if the values are part of another kind's row. */
const endings: Record<Protected, Ending | undefined> = {
  api_key: apiKeysEnd,
  run_key: runKeysEnd,
  refresh_token: sessionsEnd,
  signing_key: signingKeysEnd,
  log_key: logKeysEnd,
  authorization_code: codesEnd,
  sign_in: linksEnd,
  device_code: devicesEnd,
  // Stored in the device code's row.
  user_code: undefined,
  tenant_invite: invitationsEnd,
  transfer_invite: transferLinksEnd,
  client_token: clientTokensEnd,
  letter: lettersEnd,
  browser: undefined,
  operator_code: operatorSessionsEnd,
  // Both are stored in the operator code's row.
  operator_cookie: undefined,
  operator_token: undefined,
  management_key: managementKeysEnd,
  // Stored in the table of authorization codes.
  console_link: undefined
}

const stored = Object.values(endings).filter((ending) => ending !== undefined)

/** Describes the values that the command would invalidate, in one line for each kind that has rows. */
const plan: Effect.Effect<ReadonlyArray<string>, never, SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient
  const now = yield* Clock.currentTimeMillis
  const lines = yield* Effect.forEach(stored, ({ count, notice }) =>
    Effect.map(count(sql, now), ([row]) => ((row?.n ?? 0) === 0 ? [] : [notice(row!.n)]))
  )
  return lines.flat()
}).pipe(Effect.orDie)

/** Invalidates everything in one transaction. */
const run = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const now = yield* Clock.currentTimeMillis
  const entry = yield* audited({ action: "reseal" })
  const statements = [...stored.flatMap((ending) => ending.statements(sql, now)), entry]
  yield* writer.submit({ postings: [], statements })
})

/** Copies a SQLite database and returns a line with the copy's path. PostgreSQL's operators make their own copies. */
const snapshotOf = (location: Location) =>
  Effect.gen(function* () {
    if (location.engine === "postgres") return []
    const snapshot = `${location.path}.before-reseal-${yield* Clock.currentTimeMillis}`
    yield* Backup.backup(location.path, snapshot)
    return [`The previous database was copied to ${snapshot}`]
  })

export const command = Command.make(
  "reseal",
  {
    confirm: Options.boolean("confirm").pipe(
      Options.withDescription("apply the changes; without this flag, the command only lists them")
    )
  },
  ({ confirm }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      yield* DataFolder.appliedMigration(facts)
      yield* DataFolder.keepPrivate(facts)
      yield* Engine.alone(facts.database)
      yield* Engine.migrate(facts.database)
      const { fits, lines } = yield* Effect.all({ fits: Secret.fits(facts), lines: plan }).pipe(
        Effect.provide(Database.layerAt(facts.database))
      )
      if (fits) {
        return yield* refuse(
          `the secret matches ${facts.database.shown}, so there is nothing to recover. To change to a new secret anyway, move ` +
            `${facts.data_dir}/secret away or set a different TOLLGATE_SECRET`
        )
      }
      const stays = "Balances, ledgers, usage, transfers, teams and clients remain."
      const list = lines.map((line) => `  ${line}`)
      if (!confirm) {
        yield* Console.log([`${stays} Under a new secret:`, ...list].join("\n"))
        return yield* refuse("nothing was changed; to apply these changes, pass --confirm")
      }
      const snapshot = yield* snapshotOf(facts.database)
      yield* Effect.provide(run, Database.layerAt(facts.database))
      const keys = SigningKeys.layer.pipe(
        Layer.provide(Secret.layer(facts)),
        Layer.provide(Database.layerAt(facts.database))
      )
      yield* Effect.asVoid(Effect.provide(SigningKeys, keys))
      const now =
        facts.secret === undefined ? `the secret in ${facts.data_dir}/secret (back up this file)` : "TOLLGATE_SECRET"
      yield* Console.log([`${facts.database.shown} continues under ${now}. ${stays}`, ...list, ...snapshot].join("\n"))
    }).pipe(Effect.scoped)
).pipe(
  Command.withDescription(
    "Continue under a new secret after the old one was lost; keeps all balances and records, but invalidates keys and sign-ins"
  )
)
