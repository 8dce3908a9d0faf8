/** Client tokens and the messages that each of them is good for. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { Clients } from "../auth/Clients.ts"
import { DeploymentSecret } from "../auth/DeploymentSecret.ts"
import type { Ending } from "../auth/DeploymentSecret.ts"
import { ClientIdNotFound, ClientIdRequired } from "../auth/Problems.ts"
import { ServiceInfo } from "../kernel/ServiceInfo.ts"
import { MissingAuthorization } from "../auth/Problems.ts"
import * as Ids from "../kernel/Ids.ts"
import { statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { shownName } from "../mail/Letter.ts"
import { Outbox } from "../mail/Outbox.ts"
import { ContactEmail } from "./Settings.ts"
import type { ClientToken, ContactMessage } from "./Contact.ts"
import type { HeldClientTokenFacts } from "./HeldClientToken.ts"
import { InvalidClientToken } from "./Problems.ts"

export interface ContactsContract {
  readonly token: (
    service_client_id: string | undefined
  ) => Effect.Effect<ClientToken, ClientIdRequired | ClientIdNotFound>
  /** The client token of an `Authorization` header. */
  readonly held: (
    authorization: string | undefined
  ) => Effect.Effect<HeldClientTokenFacts, MissingAuthorization | InvalidClientToken>
  /** Stores the message, mails it to the operator, and spends the token. */
  readonly write: (token: HeldClientTokenFacts, message: ContactMessage) => Effect.Effect<void, InvalidClientToken>
}

export const tokenLifetime = Duration.minutes(30)

export class Contacts extends Context.Tag("tollgate/contact/Contacts")<Contacts, ContactsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Contacts, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const clients = yield* Clients
  const outbox = yield* Outbox
  const operator = yield* ContactEmail
  const { service_name } = yield* ServiceInfo

  const token: ContactsContract["token"] = Effect.fn("Contacts.token")(function* (service_client_id) {
    if (service_client_id === undefined || service_client_id === "") {
      return yield* new ClientIdRequired({
        message: `${service_name} client ID is required`,
        field: "service_client_id"
      })
    }
    if ((yield* clients.find(service_client_id, ["web"])) === undefined) return yield* new ClientIdNotFound()
    const now = yield* Clock.currentTimeMillis
    const token = `ct_${randomBytes(32).toString("hex")}`
    yield* Effect.orDie(
      writer.submit({
        postings: [],
        statements: [
          statement(sql`DELETE FROM tollgate_auth_client_tokens WHERE expires_at < ${now}`),
          statement(sql`INSERT INTO tollgate_auth_client_tokens (hash, client_id, expires_at)
            VALUES (${secret.hash("client_token", token)}, ${service_client_id}, ${now + Duration.toMillis(tokenLifetime)})`)
        ]
      })
    )
    return { token, expires_in: Duration.toSeconds(tokenLifetime) }
  })

  const held: ContactsContract["held"] = Effect.fn("Contacts.held")(function* (authorization) {
    if (authorization === undefined || authorization === "") return yield* new MissingAuthorization()
    const bearer = /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ""
    const hash = secret.hash("client_token", bearer)
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* Effect.orDie(
      sql<{ client_id: string }>`SELECT client_id FROM tollgate_auth_client_tokens
        WHERE hash = ${hash} AND used_at IS NULL AND expires_at > ${now}`
    )
    return row === undefined ? yield* new InvalidClientToken() : { hash, client_id: row.client_id }
  })

  const write: ContactsContract["write"] = Effect.fn("Contacts.write")(function* ({ client_id, hash }, message) {
    const now = yield* Clock.currentTimeMillis
    const id = Ids.at("msg", now)
    const { email, inquiryType: inquiry_type, message: text, name, subscribe } = message
    const letters =
      operator === undefined
        ? []
        : [
            yield* outbox.letter({
              key: `contact/${id}`,
              to: operator,
              subject: `${service_name}: ${shownName(inquiry_type, "a message")}`,
              text: `${shownName(name, "Somebody")} <${email}> writes:\n\n${text}\n\nSubscribes to news: ${subscribe ? "yes" : "no"}`
            })
          ]
    yield* writer
      .submit({
        postings: [],
        statements: [
          statement(
            sql`UPDATE tollgate_auth_client_tokens SET used_at = ${now} WHERE hash = ${hash} AND used_at IS NULL RETURNING hash`,
            1
          ),
          statement(
            sql`INSERT INTO tollgate_contact_messages ${sql.insert({
              id,
              client_id,
              name,
              email,
              inquiry_type,
              message: text,
              subscribe: subscribe ? 1 : 0,
              created_at: now
            })}`
          ),
          ...letters
        ]
      })
      .pipe(
        Effect.catchTag("Conflict", () => new InvalidClientToken()),
        Effect.catchAll((why) => (why._tag === "InvalidClientToken" ? Effect.fail(why) : Effect.die(why)))
      )
    yield* outbox.wake
  })

  return { token, held, write } satisfies ContactsContract
})

/** Under another secret no client token is known any more. */
export const clientTokensEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_auth_client_tokens WHERE used_at IS NULL AND expires_at > ${now}`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_client_tokens`)],
  told: (n) => `${n} client tokens of contact forms end`
}
