/** Client tokens and the messages that each of them is good for. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { Clients } from "../auth/Clients.ts"
import { DeploymentSecret } from "../auth/DeploymentSecret.ts"
import type { Ending } from "../auth/DeploymentSecret.ts"
import { ClientIdNotFound, ClientIdRequired } from "../auth/Problems.ts"
import { ServiceInfo } from "../kernel/ServiceInfo.ts"
import * as Ids from "../kernel/Ids.ts"
import type { BooksUnavailable } from "../ledger/Problems.ts"
import { statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { shownName } from "../mail/Letter.ts"
import { Outbox } from "../mail/Outbox.ts"
import { ContactEmail } from "./Settings.ts"
import type { ClientToken, ContactMessage } from "./Contact.ts"
import type { HeldClientTokenFacts } from "./HeldClientToken.ts"
import { InvalidClientToken } from "./Problems.ts"

/** A website's contact form: it asks for a token with its client id, and sends one message with it. */
export interface ContactsContract {
  /** A token for one message, good for 30 minutes, for a registered website. */
  readonly token: (asked: {
    readonly service_client_id?: string | undefined
  }) => Effect.Effect<ClientToken, ClientIdRequired | ClientIdNotFound | BooksUnavailable>
  /** What a token stands for, as long as it is good. */
  readonly find: (token: string) => Effect.Effect<HeldClientTokenFacts, InvalidClientToken>
  /** Stores the message, mails it to the operator, and ends the token. */
  readonly write: (asked: {
    readonly token: HeldClientTokenFacts
    readonly message: ContactMessage
  }) => Effect.Effect<void, InvalidClientToken | BooksUnavailable>
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

  const token: ContactsContract["token"] = Effect.fn("Contacts.token")(function* ({ service_client_id }) {
    if (service_client_id === undefined || service_client_id === "") {
      return yield* new ClientIdRequired({
        message: `${service_name} client ID is required`,
        field: "service_client_id"
      })
    }
    if ((yield* clients.find(service_client_id, ["web"])) === undefined) return yield* new ClientIdNotFound()
    const now = yield* Clock.currentTimeMillis
    const token = `ct_${randomBytes(32).toString("hex")}`
    const stored = writer.submit({
      postings: [],
      statements: [
        statement(sql`DELETE FROM tollgate_auth_client_tokens WHERE expires_at < ${now}`),
        statement(sql`INSERT INTO tollgate_auth_client_tokens (hash, client_id, expires_at)
            VALUES (${secret.hash("client_token", token)}, ${service_client_id}, ${now + Duration.toMillis(tokenLifetime)})`)
      ]
    })
    yield* Effect.catchTag(stored, "Conflict", Effect.die)
    return { token, expires_in: Duration.toSeconds(tokenLifetime) }
  })

  const find: ContactsContract["find"] = Effect.fn("Contacts.find")(function* (token) {
    const hash = secret.hash("client_token", token)
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* Effect.orDie(
      sql<{ client_id: string }>`SELECT client_id FROM tollgate_auth_client_tokens
        WHERE hash = ${hash} AND used_at IS NULL AND expires_at > ${now}`
    )
    return row === undefined ? yield* new InvalidClientToken() : { hash, client_id: row.client_id }
  })

  const write: ContactsContract["write"] = Effect.fn("Contacts.write")(function* ({ message, token }) {
    const { client_id, hash } = token
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
      .pipe(Effect.catchTag("Conflict", () => new InvalidClientToken()))
    yield* outbox.wake
  })

  return { token, find, write } satisfies ContactsContract
})

/** Under another secret no client token is known any more. */
export const clientTokensEnd: Ending = {
  count: (sql, now) =>
    sql`SELECT count(*) AS n FROM tollgate_auth_client_tokens WHERE used_at IS NULL AND expires_at > ${now}`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_client_tokens`)],
  told: (n) => `${n} client tokens of contact forms end`
}
