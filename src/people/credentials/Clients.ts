/**
 * OAuth clients, applications and websites that the operator registered in the configuration, or in the database with a command. There is no dynamic
 * registration.
 *
 * Where the specification is silent:
 * - OAuth clients and application sign-ins from an earlier version are not trusted. They keep the scope that their consent page showed. Access tokens
 *   from an earlier version contain no sign-in, so the service rejects them, and clients refresh them.
 * - OAuth clients are public and use PKCE with S256. A redirect URI must match exactly, except for the port of a loopback address. Consent pages
 *   store their state in a sealed cookie for ten minutes.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import * as Families from "./Families.ts"

/** The kind of client. `app` signs users in with a provider's token and `oauth` with OAuth. `web` is a website's contact form. */
export type ClientKind = "app" | "oauth" | "web"

export interface Client {
  readonly client_id: string
  readonly kind: ClientKind
  readonly name: string
  readonly redirect_uris: ReadonlyArray<string>
  /** Whether the client is one of the operator's `oauth` clients and may do everything that the user may do. */
  readonly trusted?: boolean | undefined
  /** Whether the `oauth` client may use the device flow. */
  readonly device?: boolean | undefined
}

export class ConfiguredClients extends Context.Tag("tollgate/auth/ConfiguredClients")<
  ConfiguredClients,
  ReadonlyArray<Client>
>() {}

export interface ClientsContract {
  readonly find: (client_id: string, kinds: ReadonlyArray<ClientKind>) => Effect.Effect<Client | undefined>
  readonly list: Effect.Effect<ReadonlyArray<Client>>
  /** Registers a client in the same transaction as `beside`. `beside` receives the client's id. */
  readonly create: (
    client: Omit<Client, "client_id">,
    beside?: (client_id: string) => ReadonlyArray<Statement>
  ) => Effect.Effect<Client, BooksUnavailable>
  /**
   * Revokes a client and ends its sign-ins. Returns `false` unless the client is registered in the database. Clients from the configuration cannot be
   * revoked.
   */
  readonly revoke: (client_id: string, beside?: ReadonlyArray<Statement>) => Effect.Effect<boolean, BooksUnavailable>
}

export class Clients extends Context.Tag("tollgate/auth/Clients")<Clients, ClientsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Clients, make))
}

type Row = Omit<Client, "redirect_uris" | "trusted" | "device"> & {
  readonly redirect_uris: string
  readonly trusted: number
  readonly device: number
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const configured = yield* ConfiguredClients

  const fromRow = (row: Row): Client => ({
    ...row,
    redirect_uris: JSON.parse(row.redirect_uris) as ReadonlyArray<string>,
    trusted: row.trusted === 1,
    device: row.device === 1
  })

  const find: ClientsContract["find"] = Effect.fnUntraced(function* (client_id, kinds) {
    const known = configured.find((client) => client.client_id === client_id)
    const [row] =
      known === undefined
        ? yield* Effect.orDie(
            sql<Row>`SELECT client_id, kind, name, redirect_uris, trusted, device FROM tollgate_auth_clients
              WHERE client_id = ${client_id} AND revoked_at IS NULL`
          )
        : []
    const client = known ?? (row === undefined ? undefined : fromRow(row))
    return client !== undefined && kinds.includes(client.kind) ? client : undefined
  })

  const list = Effect.map(
    Effect.orDie(
      sql<Row>`SELECT client_id, kind, name, redirect_uris, trusted, device FROM tollgate_auth_clients WHERE revoked_at IS NULL ORDER BY created_at`
    ),
    (rows) => [...configured, ...rows.map(fromRow)]
  )

  const create: ClientsContract["create"] = Effect.fnUntraced(function* (
    { device = false, kind, name, redirect_uris, trusted = false },
    beside = () => []
  ) {
    const now = yield* Clock.currentTimeMillis
    const client_id = `${kind}-${randomBytes(12).toString("hex")}`
    const client: Client = { client_id, kind, name, redirect_uris, trusted, device }
    const row = {
      ...client,
      redirect_uris: JSON.stringify(redirect_uris),
      trusted: trusted ? 1 : 0,
      device: device ? 1 : 0,
      created_at: now
    }
    yield* Statements.write(
      writer,
      statement(sql`INSERT INTO tollgate_auth_clients ${sql.insert(row)}`),
      ...beside(client_id)
    )
    return client
  })

  const revoke: ClientsContract["revoke"] = Effect.fnUntraced(function* (client_id, beside = []) {
    const now = yield* Clock.currentTimeMillis
    const ended = sql`UPDATE tollgate_auth_clients SET revoked_at = ${now}
      WHERE client_id = ${client_id} AND revoked_at IS NULL RETURNING client_id`
    // Refresh tokens become invalid at once, access tokens within a minute.
    const signIns = Families.ending(sql, sql`client_id = ${client_id}`)
    return yield* Statements.tryWrite(writer, statement(ended, 1), ...signIns, ...beside)
  })

  return { find, list, create, revoke } satisfies ClientsContract
})

/** Returns whether an address may be registered. An address must not contain a fragment or use a scheme such as `javascript:` or `file:`. */
export const isRedirectAddress = (text: string): boolean =>
  URL.canParse(text) &&
  new URL(text).hash === "" &&
  !text.includes("#") &&
  !/^(?:javascript|data|vbscript|file|blob|about):$/.test(new URL(text).protocol)

/**
 * Returns whether the client registered the redirect URI. The strings must be equal except for the port of a loopback address, because a native
 * application cannot know its port in advance (RFC 8252). Compares the strings unparsed, because a browser can parse them differently.
 */
export const mayRedirect = ({ redirect_uris }: Client, address: string): boolean =>
  redirect_uris.some((registered) => registered === address || isSameLoopback(registered, address))

/** Matches the host, an optional port, and the unparsed remainder. */
const loopback = /^(http:\/\/(?:127\.0\.0\.1|localhost|\[::1\]))(?::(\d{1,5}))?((?:[/?][^]*)?)$/

const isSameLoopback = (registered: string, address: string): boolean => {
  const [one, other] = [loopback.exec(registered), loopback.exec(address)]
  return one !== null && other !== null && one[1] === other[1] && one[3] === other[3] && isPort(other[2])
}

const isPort = (port: string | undefined): boolean => port === undefined || Number(port) <= 65_535
