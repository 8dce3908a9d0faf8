/**
 * The ES256 keys that sign tokens. The newest key signs. The service publishes all keys, so that clients can verify tokens, and a rotation signs out
 * no user. The database stores private keys sealed.
 *
 * Where the specification is silent:
 * - A token is valid if one of the service's keys signed it, so `public_url` can change without signing out users. Signing keys rotate automatically.
 *   An earlier key remains published until its last token has expired, and is then deleted.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer, Runtime } from "effect"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose"
import type { CryptoKey, JWK } from "jose"
import * as Loop from "../../kernel/Loop.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { Signals } from "../../storage/engine/Signals.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/write/Ending.ts"

export interface SigningKey {
  readonly kid: string
  readonly key: CryptoKey
}

export interface SigningKeysContract {
  readonly current: () => SigningKey
  /** Returns the public key with this id, including one that another process created, or `undefined`. */
  readonly find: (kid: string) => Effect.Effect<CryptoKey | undefined>
  /** Returns the public keys to publish in `/.well-known/jwks.json`. */
  readonly published: () => ReadonlyArray<JWK>
  /**
   * Creates a new key in the same transaction as `beside`. From then on, all nodes sign with the new key. Earlier keys remain published as long as
   * they have valid tokens.
   */
  readonly rotate: (beside?: ReadonlyArray<Statement>) => Effect.Effect<SigningKey, BooksUnavailable>
  /** Loads keys that other processes created. */
  readonly reload: Effect.Effect<void>
  /** Runs hourly on each node. It reloads the keys, replaces the current key after 30 days, and deletes keys that have no valid tokens. */
  readonly job: Loop.Job
}

export class SigningKeys extends Context.Tag("tollgate/auth/SigningKeys")<SigningKeys, SigningKeysContract>() {
  static readonly layer = Layer.suspend(() => Layer.scoped(SigningKeys, make).pipe(Layer.provide(Signals.layer)))
  static readonly layerJobs = Loop.layer(SigningKeys, ({ job }) => [job])
}

export const algorithm = "ES256"

interface Row {
  readonly kid: string
  readonly public: string
  readonly sealed: string
  readonly created_at: number
}

/** The age at which a key is replaced, and the interval between checks. */
export const rotation = Duration.days(30)
const turnPause = Duration.hours(1)

/** The minimum time between reloads that unknown keys trigger. */
const reloadPause = Duration.seconds(1)

const topic = "signing keys"

/** The maximum token lifetime. */
export const signedLifetime = Duration.hours(1)

/** How long an earlier key is retained: two job iterations of another process, because the first may fail, plus a token lifetime. */
const retirement = Duration.toMillis(turnPause) * 2 + Duration.toMillis(signedLifetime)

interface Dependencies {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
}

/** The keys from the database, in the form that this process uses. */
interface KeySet {
  readonly current: SigningKey
  readonly created_at: number
  readonly byId: ReadonlyMap<string, CryptoKey>
  readonly published: ReadonlyArray<JWK>
  /** The ids of keys that have no valid tokens. */
  readonly retired: ReadonlyArray<string>
}

const make = Effect.gen(function* () {
  const dependencies: Dependencies = { sql: yield* SqlClient, writer: yield* Writer, secret: yield* DeploymentSecret }
  const { sql } = dependencies
  if ((yield* readKeyRows(sql)).length === 0) yield* generate(dependencies, undefined)
  let keys = yield* load(dependencies)
  const reload = Effect.map(load(dependencies), (loaded) => {
    keys = loaded
  })
  const reloadSeldom = yield* Effect.cachedWithTTL(reload, reloadPause)
  const { publish, subscribe } = yield* Signals
  const run = Runtime.runFork(yield* Effect.runtime<never>())
  yield* subscribe(topic, () => void run(reload))
  const rotate: SigningKeysContract["rotate"] = (beside) =>
    Effect.suspend(() => generate(dependencies, keys.current.kid, beside)).pipe(
      Effect.zipRight(reload),
      Effect.zipRight(Effect.suspend(() => publish(topic, [keys.current.kid]))),
      Effect.map(() => keys.current)
    )
  const find: SigningKeysContract["find"] = (kid) =>
    Effect.suspend(() => {
      const key = keys.byId.get(kid)
      return key === undefined ? Effect.map(reloadSeldom, () => keys.byId.get(kid)) : Effect.succeed(key)
    })
  const turn = Effect.gen(function* () {
    yield* reload
    yield* retire(dependencies, keys.retired)
    const now = yield* Clock.currentTimeMillis
    if (now - keys.created_at < Duration.toMillis(rotation)) return
    const { kid } = yield* rotate()
    yield* Effect.annotateLogs(Effect.logInfo("access tokens are now signed with a new key"), "kid", kid)
  })
  return {
    current: () => keys.current,
    find,
    published: () => keys.published,
    rotate,
    reload,
    job: { name: "signing keys", turn: Effect.as(turn, turnPause), everywhere: true }
  } satisfies SigningKeysContract
})

const readKeyRows = (sql: SqlClient) =>
  Effect.orDie(sql<Row>`SELECT kid, public, sealed, created_at FROM tollgate_auth_signing_keys
    ORDER BY created_at DESC, kid`)

/** Inserts a new key. If several processes try concurrently, only the first succeeds, because `newest` is stale for the others. */
const generate = Effect.fnUntraced(function* (
  { secret, sql, writer }: Dependencies,
  newest: string | undefined,
  beside: ReadonlyArray<Statement> = []
) {
  const { privateKey, publicKey } = yield* Effect.promise(() => generateKeyPair(algorithm, { extractable: true }))
  const jwk = yield* Effect.promise(() => exportJWK(publicKey))
  const kid = yield* Effect.promise(() => calculateJwkThumbprint(jwk))
  const sealed = yield* secret.seal(JSON.stringify(yield* Effect.promise(() => exportJWK(privateKey))))
  const published = JSON.stringify({ ...jwk, kid, alg: algorithm, use: "sig" })
  const now = yield* Clock.currentTimeMillis
  const insert = sql`INSERT INTO tollgate_auth_signing_keys (kid, public, sealed, created_at)
    SELECT ${kid}, ${published}, ${sealed}, (SELECT max(at) FROM (SELECT CAST(${now} AS BIGINT) AS at UNION ALL SELECT created_at + 1 FROM tollgate_auth_signing_keys) times)
    WHERE (SELECT kid FROM tollgate_auth_signing_keys ORDER BY created_at DESC, kid LIMIT 1) IS NOT DISTINCT FROM ${newest ?? null}`
  yield* Statements.write(writer, statement(insert), ...beside)
})

const load = Effect.fnUntraced(function* ({ secret, sql }: Dependencies): Effect.fn.Return<KeySet> {
  const all = yield* readKeyRows(sql)
  const now = yield* Clock.currentTimeMillis
  const isRetired = (i: number) => i > 0 && all[i - 1]!.created_at <= now - retirement
  const published = all.filter((_, i) => !isRetired(i)).map((row) => JSON.parse(row.public) as JWK)
  const imported = yield* Effect.forEach(published, (jwk) =>
    Effect.map(
      Effect.promise(() => importJWK(jwk, algorithm)),
      (key) => [jwk.kid!, key as CryptoKey] as const
    )
  )
  const { created_at, kid, sealed } = all[0]!
  const jwk = JSON.parse(yield* secret.unseal(sealed)) as JWK
  const key = (yield* Effect.promise(() => importJWK(jwk, algorithm))) as CryptoKey
  return {
    current: { kid, key },
    created_at,
    byId: new Map(imported),
    published,
    retired: all.filter((_, i) => isRetired(i)).map((row) => row.kid)
  }
})

const retire = Effect.fnUntraced(function* ({ sql, writer }: Dependencies, kids: ReadonlyArray<string>) {
  if (kids.length === 0) return
  const retired = sql`DELETE FROM tollgate_auth_signing_keys WHERE ${sql.in("kid", kids)}`
  yield* Statements.write(writer, statement(retired))
  yield* Effect.annotateLogs(Effect.logInfo("signing keys were retired"), "kids", kids.join(" "))
})

/** Reads a string sealed with the deployment's secret, for detecting a different secret. Returns `undefined` if there is none yet. */
export const sealedSample: Effect.Effect<string | undefined, never, SqlClient> = Effect.flatMap(
  SqlClient,
  (sql) => sql<Pick<Row, "sealed">>`SELECT sealed FROM tollgate_auth_signing_keys ORDER BY created_at DESC, kid LIMIT 1`
).pipe(
  Effect.map(([row]) => row?.sealed),
  Effect.orDie
)

/** Deletes the signing keys, because a new secret cannot open them. The next start creates a new key. */
export const signingKeysEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_auth_signing_keys`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_signing_keys`)],
  notice: (n) => `${n} signing keys are deleted; their access tokens become invalid, and a new key is created`
}
