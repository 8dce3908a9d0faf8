/**
 * Passkeys. A signed-in user registers a passkey, and later signs in with it without entering an account.
 *
 * Where the specification is silent:
 * - Passkeys are bound to the domain name in `public_url`. They are unavailable at an address without a domain name or without https.
 * - The authenticator must verify the user (by PIN, fingerprint or face), because the passkey is the only factor.
 * - An account may have 20 passkeys. A registration is bound to the account that began it, and a sign-in to its browser. Each must be completed
 *   within five minutes.
 * - A passkey signs in to the console. The OAuth pages offer the other sign-in methods.
 * - A passkey outlives the sign-in that added it. After a session is stolen, the passkeys must also be deleted.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import * as Ids from "../../kernel/Ids.ts"
import type { AccountId, TenantId } from "../../kernel/Ids.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { AccountSuspended } from "../tenants/Problems.ts"
import type { AccountNotFound } from "../tenants/Problems.ts"
import { Tenants } from "../tenants/Tenants.ts"
import type { TenantsContract } from "../tenants/Tenants.ts"
import * as Challenges from "./Challenges.ts"
import { challengeLifetime, newSecret } from "./Challenges.ts"
import { transportsIn } from "./Passkey.ts"
import type { Asserted, CreationOptions, NewPasskey, Passkey, PasskeyId, RequestOptions, Transport } from "./Passkey.ts"
import {
  PasskeyNotFound,
  PasskeyRegistered,
  PasskeyRejected,
  PasskeysUnavailable,
  TooManyPasskeys
} from "./Problems.ts"
import { removingAll } from "./Removal.ts"
import { algorithms, challengeIn, relyingPartyOf, verifiedAssertion, verifiedCreation } from "./RelyingParty.ts"
import type { RelyingParty } from "./RelyingParty.ts"

export const passkeysMax = 20

export interface PasskeysContract {
  /** Whether browsers offer passkeys at the service's address. */
  readonly available: boolean
  /** Lists the account's passkeys, oldest first. */
  readonly list: (account: AccountId) => Effect.Effect<ReadonlyArray<Passkey>>
  readonly begin: (
    account: AccountId
  ) => Effect.Effect<CreationOptions, PasskeysUnavailable | TooManyPasskeys | AccountNotFound | BooksUnavailable>
  /** Completes a registration and saves the authenticator's passkey. */
  readonly register: (
    account: AccountId,
    passkey: NewPasskey
  ) => Effect.Effect<
    Passkey,
    PasskeysUnavailable | PasskeyRejected | PasskeyRegistered | TooManyPasskeys | BooksUnavailable
  >
  /** Deletes a passkey in the same transaction as `beside`. */
  readonly remove: (
    account: AccountId,
    id: PasskeyId,
    beside?: ReadonlyArray<Statement>
  ) => Effect.Effect<void, PasskeyNotFound | BooksUnavailable>
  /** Returns the statements that delete all of an account's passkeys and its pending registration. */
  readonly removingAll: (account: AccountId) => ReadonlyArray<Statement>
  /** Begins a sign-in. Only the browser that receives `cookie` can complete it. */
  readonly challenge: Effect.Effect<
    { readonly options: RequestOptions; readonly cookie: string },
    PasskeysUnavailable | BooksUnavailable
  >
  /** Completes a sign-in with a passkey that signed this browser's challenge. Returns the passkey's user. */
  readonly signIn: (
    cookie: string | undefined,
    asserted: Asserted
  ) => Effect.Effect<
    { readonly account_id: AccountId; readonly tenant_id: TenantId },
    PasskeysUnavailable | PasskeyRejected | AccountSuspended | BooksUnavailable
  >
}

export class Passkeys extends Context.Tag("tollgate/passkeys/Passkeys")<Passkeys, PasskeysContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Passkeys, make))
}

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly tenants: TenantsContract
  readonly challenges: Challenges.Challenges
  readonly service_name: string
  readonly party: RelyingParty | undefined
}

const make = Effect.gen(function* () {
  const { public_url, service_name } = yield* ServiceInfo
  const [sql, writer] = [yield* SqlClient, yield* Writer]
  const dependencies: Dependencies = {
    sql,
    writer,
    tenants: yield* Tenants,
    challenges: Challenges.make(sql, writer),
    service_name,
    party: relyingPartyOf(public_url)
  }
  return {
    available: dependencies.party !== undefined,
    list: (account) => listPasskeys(dependencies, account),
    begin: makeBegin(dependencies),
    register: makeRegister(dependencies),
    remove: makeRemove(dependencies),
    removingAll: (account) => removingAll(sql, account),
    challenge: makeChallenge(dependencies),
    signIn: makeSignIn(dependencies)
  } satisfies PasskeysContract
})

const partyOf = ({ party }: Dependencies) => (party === undefined ? new PasskeysUnavailable() : Effect.succeed(party))

const listPasskeys = ({ sql }: Dependencies, account: AccountId) =>
  Effect.orDie(
    sql<Passkey>`SELECT id, name, created_at, last_used_at FROM tollgate_passkeys_passkeys
      WHERE account_id = ${account} ORDER BY id`
  )

/** Returns the handle that the authenticator stores with the passkey and later returns to identify the account. */
const userHandleOf = (account: AccountId): string => Buffer.from(account, "utf8").toString("base64url")

// ---- registering --------------------------------------------------------------------------------------------------------

const makeBegin = (dependencies: Dependencies): PasskeysContract["begin"] =>
  Effect.fn("Passkeys.begin")(function* (account_id) {
    const { challenges, service_name, sql, tenants } = dependencies
    const party = yield* partyOf(dependencies)
    const { account } = yield* tenants.me(account_id)
    const known = yield* Effect.orDie(
      sql<{ credential_id: string; transports: string }>`SELECT credential_id, transports
        FROM tollgate_passkeys_passkeys WHERE account_id = ${account_id} ORDER BY id`
    )
    if (known.length >= passkeysMax) return yield* new TooManyPasskeys({ limit: passkeysMax })
    return {
      challenge: yield* challenges.issue({ account_id }),
      rp: { id: party.id, name: service_name },
      user: {
        id: userHandleOf(account_id),
        name: account.email || account.name || account_id,
        displayName: account.name || account.email
      },
      pubKeyCredParams: algorithms.map((alg) => ({ type: "public-key" as const, alg })),
      timeout: Duration.toMillis(challengeLifetime),
      attestation: "none",
      excludeCredentials: known.map(({ credential_id, transports }) => ({
        id: credential_id,
        type: "public-key" as const,
        transports: JSON.parse(transports) as ReadonlyArray<Transport>
      })),
      authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" }
    }
  })

const makeRegister = (dependencies: Dependencies): PasskeysContract["register"] =>
  Effect.fn("Passkeys.register")(function* (account_id, { credential: created, name }) {
    const { challenges, sql, writer } = dependencies
    const party = yield* partyOf(dependencies)
    const challenge = challengeIn(created.response)
    if (!(yield* challenges.spend(challenge, { account_id }))) return yield* new PasskeyRejected()
    const credential = yield* verifiedCreation(party, challenge, created)
    const now = yield* Clock.currentTimeMillis
    const id = Ids.at("pky", now) as PasskeyId
    const public_key = Buffer.from(credential.publicKey).toString("base64url")
    const transports = JSON.stringify(transportsIn(created.response.transports))
    const stored = yield* Statements.tryWrite(
      writer,
      statement(
        sql`INSERT INTO tollgate_passkeys_passkeys
            (id, credential_id, account_id, public_key, counter, transports, name, created_at)
          SELECT ${id}, ${credential.id}, ${account_id}, ${public_key}, ${credential.counter}, ${transports}, ${name}, ${now}
          WHERE (SELECT count(*) FROM tollgate_passkeys_passkeys WHERE account_id = ${account_id}) < ${passkeysMax}
          ON CONFLICT (credential_id) DO NOTHING RETURNING id`,
        1
      )
    )
    if (stored) return { id, name, created_at: now, last_used_at: null }
    const isFull = (yield* listPasskeys(dependencies, account_id)).length >= passkeysMax
    return yield* isFull ? new TooManyPasskeys({ limit: passkeysMax }) : new PasskeyRegistered()
  })

const makeRemove = ({ sql, writer }: Dependencies): PasskeysContract["remove"] =>
  Effect.fn("Passkeys.remove")(function* (account, id, beside = []) {
    const removed = sql`DELETE FROM tollgate_passkeys_passkeys WHERE id = ${id} AND account_id = ${account} RETURNING id`
    if (!(yield* Statements.tryWrite(writer, statement(removed, 1), ...beside))) return yield* new PasskeyNotFound()
  })

// ---- signing in ---------------------------------------------------------------------------------------------------------

const makeChallenge = (dependencies: Dependencies): PasskeysContract["challenge"] =>
  Effect.gen(function* () {
    const party = yield* partyOf(dependencies)
    const cookie = newSecret()
    const challenge = yield* dependencies.challenges.issue({ browser: cookie })
    const timeout = Duration.toMillis(challengeLifetime)
    return { options: { challenge, rpId: party.id, timeout, userVerification: "required" as const }, cookie }
  })

interface Row {
  readonly id: PasskeyId
  readonly credential_id: string
  readonly account_id: AccountId
  readonly public_key: string
  readonly counter: number
  readonly transports: string
}

const makeSignIn = (dependencies: Dependencies): PasskeysContract["signIn"] =>
  Effect.fn("Passkeys.signIn")(function* (cookie, asserted) {
    const { challenges, sql, tenants } = dependencies
    const party = yield* partyOf(dependencies)
    const challenge = challengeIn(asserted.response)
    if (cookie === undefined || !(yield* challenges.spend(challenge, { browser: cookie })))
      return yield* new PasskeyRejected()
    const [row] = yield* Effect.orDie(
      sql<Row>`SELECT id, credential_id, account_id, public_key, counter, transports FROM tollgate_passkeys_passkeys
        WHERE credential_id = ${asserted.id}`
    )
    if (row === undefined) return yield* new PasskeyRejected()
    const { userHandle } = asserted.response
    if (typeof userHandle === "string" && userHandle !== "" && userHandle !== userHandleOf(row.account_id))
      return yield* new PasskeyRejected()
    const key = { ...row, transports: JSON.parse(row.transports) as ReadonlyArray<Transport> }
    const counter = yield* verifiedAssertion(party, challenge, asserted, key)
    const { account_id } = row
    if (yield* tenants.isSuspended(account_id)) return yield* new AccountSuspended()
    yield* noteUse(dependencies, row, counter)
    const { account } = yield* Effect.catchTag(tenants.me(account_id), "AccountNotFound", Effect.die)
    return { account_id, tenant_id: account.tenant_id }
  })

/** Saves the counter and the time of use. Rejects a sign-in that was verified against an outdated counter. */
const noteUse = Effect.fnUntraced(function* ({ sql, writer }: Dependencies, row: Row, counter: number) {
  const now = yield* Clock.currentTimeMillis
  const used = sql`UPDATE tollgate_passkeys_passkeys SET counter = ${counter}, last_used_at = ${now}
    WHERE id = ${row.id} AND counter = ${row.counter} RETURNING id`
  if (!(yield* Statements.tryWrite(writer, statement(used, 1)))) return yield* new PasskeyRejected()
})
