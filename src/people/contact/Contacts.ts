/**
 * Stores and forwards messages from contact forms on websites.
 *
 * Where the specification is silent:
 * - The response with a client token is a bare object. The response to a contact message is an envelope, as in the specification's examples.
 * - The service deletes a message after 180 days (`contact_kept_days`).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { Clients } from "../credentials/Clients.ts"
import * as ClientTokens from "../auth/ClientTokens.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import { ClientIdNotFound, ClientIdRequired } from "../auth/Problems.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import { afterCommit, Writer } from "../../books/ledger/write/Writer.ts"
import { plainName } from "../mail/Letter.ts"
import { Outbox } from "../mail/Outbox.ts"
import { ContactEmail, ContactKeptDays } from "./Settings.ts"
import type { ClientToken, ContactMessage } from "./Contact.ts"
import type { HeldClientTokenFacts } from "./HeldClientToken.ts"
import { InvalidClientToken } from "./Problems.ts"

export interface ContactsContract {
  /** Issues a token to a registered website. The token admits one message within 30 minutes. */
  readonly token: (request: {
    readonly service_client_id?: string | undefined
  }) => Effect.Effect<ClientToken, ClientIdRequired | ClientIdNotFound | BooksUnavailable>
  /** Finds the website that a valid token belongs to. */
  readonly find: (token: string) => Effect.Effect<HeldClientTokenFacts, InvalidClientToken>
  /** Saves the message, emails it to the operator if `contact_email` is set, and spends the token. */
  readonly write: (request: {
    readonly token: HeldClientTokenFacts
    readonly message: ContactMessage
  }) => Effect.Effect<void, InvalidClientToken | BooksUnavailable>
}

export class Contacts extends Context.Tag("tollgate/contact/Contacts")<Contacts, ContactsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Contacts, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const writer = yield* Writer
  const tokens = ClientTokens.make(sql, yield* DeploymentSecret)
  const clients = yield* Clients
  const outbox = yield* Outbox
  const operator = yield* ContactEmail
  const keptFor = Duration.toMillis(Duration.days(yield* ContactKeptDays))
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
    const { statements, token } = tokens.issue(service_client_id, now)
    yield* Statements.write(writer, ...statements)
    return { token, expires_in: Duration.toSeconds(ClientTokens.tokenLifetime) }
  })

  const find: ContactsContract["find"] = Effect.fn("Contacts.find")(function* (token) {
    const found = yield* tokens.find(token, yield* Clock.currentTimeMillis)
    return found ?? (yield* new InvalidClientToken())
  })

  const write: ContactsContract["write"] = Effect.fn("Contacts.write")(function* ({ message, token }) {
    const { client_id, hash } = token
    const now = yield* Clock.currentTimeMillis
    const id = Ids.at("msg", now)
    const letters = operator === undefined ? [] : [yield* outbox.letter(letterOf(service_name, operator, id, message))]
    const written = writer.submit({
      postings: [],
      statements: [
        tokens.spend(hash, now),
        forgetOld(sql, now - keptFor),
        insert(sql, { id, client_id, created_at: now }, message),
        ...letters
      ]
    })
    yield* Effect.catchTag(afterCommit(written, outbox.wake), "Conflict", () => new InvalidClientToken())
  })

  return { token, find, write } satisfies ContactsContract
})

const letterOf = (service_name: string, operator: string, id: string, message: ContactMessage) => ({
  key: `contact/${id}`,
  to: operator,
  subject: `${service_name}: ${plainName(message.inquiryType, "a message")}`,
  text: `${plainName(message.name, "Someone")} <${message.email}> writes:\n\n${message.message}\n\nSubscribe to news: ${message.subscribe ? "yes" : "no"}`
})

/** Deletes a few messages from before this time. */
const forgetOld = (sql: SqlClient.SqlClient, before: number) =>
  statement(sql`DELETE FROM tollgate_contact_messages WHERE id IN (SELECT id FROM tollgate_contact_messages
    WHERE id < ${Ids.at("msg", Math.max(0, before))} ORDER BY id LIMIT 20)`)

const insert = (
  sql: SqlClient.SqlClient,
  facts: { readonly id: string; readonly client_id: string; readonly created_at: number },
  { email, inquiryType: inquiry_type, message, name, subscribe }: ContactMessage
) =>
  statement(
    sql`INSERT INTO tollgate_contact_messages ${sql.insert({ ...facts, name, email, inquiry_type, message, subscribe: subscribe ? 1 : 0 })}`
  )
