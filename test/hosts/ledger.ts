/** A host with its own table in its own SQLite database, and people's credit beside it: one sends the other credit. */
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Layer, Option } from "effect"
import * as Database from "tollgate/database"
import { billingAccountOf, Ledger, usd, verify } from "tollgate/ledger"
import type { Nano } from "tollgate/ledger"
import * as Transfers from "tollgate/transfers"

const rooms = Transfers.layer.pipe(
  Layer.provide([
    Transfers.PriceList.layerNone,
    Transfers.Mail.layerNone,
    Transfers.ServiceInfo.layer({ service_name: "Host", key_prefix: "host", public_url: "https://host.example" }),
    Transfers.layerSecret(new TextEncoder().encode("a secret of thirty-two characters"))
  ]),
  Layer.provideMerge(Database.layerOver),
  Layer.provideMerge(SqliteClient.layer({ filename: "host.db" }))
)

const program = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, what TEXT)`
  const tenants = yield* Transfers.Tenants
  const transfers = yield* Transfers.Transfers
  const ledger = yield* Ledger
  const welcome = (name: string) =>
    tenants.welcome({ provider: "google", subject: name, email: `${name}@example.com`, email_verified: true, name })
  const ada = yield* welcome("ada")
  const bob = yield* welcome("bob")
  const account = billingAccountOf(ada.home_tenant_id)
  yield* ledger.credit({ account, amount: 10n * usd, source: "purchase", reference: "order 1" })
  const caller = ({ account_id, home_tenant_id }: typeof ada) => ({ account_id, tenant_id: home_tenant_id })
  const send = (key: string, amount: Nano) =>
    transfers.create({
      caller: caller(ada),
      key,
      transfer: { amount, recipient_email: "bob@example.com", kind: "gift" }
    })
  const { transfer } = yield* send("host-key-0123456789", 4n * usd)
  yield* transfers.accept({ caller: caller(bob), transfer_id: transfer.id })
  // Typed errors: the compiler knows which may come, and what each of them holds.
  const refused = yield* send("host-key-9876543210", 400n * usd).pipe(
    Effect.as("made"),
    Effect.catchTag("TransferInsufficientCredits", ({ available, required }) =>
      Effect.succeed(`${available / usd} of ${required / usd} USD`)
    )
  )
  const accounts = yield* Effect.forEach([ada, bob], (one) => ledger.accountOfTenant(one.home_tenant_id))
  const balances = accounts.map((one) => `${Option.getOrThrow(one).giftable / usd}`)
  const tables = (yield* sql<{ name: string }>`SELECT name FROM sqlite_master WHERE type = 'table'`).map((t) => t.name)
  const foreign = tables.filter((name) => !name.startsWith("tollgate_") && name !== "orders")
  return { refused, balances, findings: yield* verify, foreign }
})

console.log(JSON.stringify(await Effect.runPromise(Effect.scoped(Effect.provide(program, rooms)))))
