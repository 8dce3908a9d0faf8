/**
 * The keys that tokens are signed with: ES256, the newest signs, all are published, so that anyone can verify a token and a new key
 * signs nobody out. Private halves are stored sealed. A key is deleted once the last token that it signed has ended.
 *
 * Where the specification is silent:
 * - A token is ours if one of our keys signed it; `public_url` may change without signing anyone out. Signing keys rotate by
 *   themselves; an earlier one is published until the last token that it signed has ended, and then deleted.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Layer, Runtime } from "effect"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose"
import type { CryptoKey, JWK } from "jose"
import * as Loop from "../../kernel/Loop.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import * as Statements from "../../books/ledger/Statements.ts"
import { statement } from "../../books/ledger/Transaction.ts"
import type { Statement } from "../../books/ledger/Transaction.ts"
import { Writer } from "../../books/ledger/Writer.ts"
import { Signals } from "../../storage/engine/Signals.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { Ending } from "../../books/ledger/Ending.ts"

export interface SigningKey {
  readonly kid: string
  readonly key: CryptoKey
}

export interface SigningKeysContract {
  /** The one that signs now. */
  readonly current: () => SigningKey
  /** The public key of that id, if it is one of ours: also one that another process made a moment ago. */
  readonly find: (kid: string) => Effect.Effect<CryptoKey | undefined>
  /** The public halves, as `/.well-known/jwks.json` shows them. */
  readonly published: () => ReadonlyArray<JWK>
  /**
   * Makes a new key, which signs from now on, on the other nodes too. The others stay published as long as their tokens last, so nobody is
   * signed out. `beside` stands in the same transaction.
   */
  readonly rotate: (beside?: ReadonlyArray<Statement>) => Effect.Effect<SigningKey, BooksUnavailable>
  /** Takes over keys that another process has made. */
  readonly reload: Effect.Effect<void>
  /** Every hour, on each node: `reload`, the rotation of a key that is older than 30 days, and the end of keys that no token needs. */
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

/** How old a key may become before another takes its place, and how often that is looked at. */
export const rotation = Duration.days(30)
const looks = Duration.hours(1)

/** How often keys are read again since a token names one that is not known. */
const readAgainAfter = Duration.seconds(1)

const topic = "signing keys"

/** How long a token lasts that is signed here. */
export const signedLifetime = Duration.hours(1)

/**
 * How long after a newer key was made an earlier one may still be needed: another process signs with it until it looks (which may
 * fail for a while), and then the last token lasts its time.
 */
const retirement = Duration.toMillis(looks) * 2 + Duration.toMillis(signedLifetime)

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const stored = sql<Row>`SELECT kid, public, sealed, created_at FROM tollgate_auth_signing_keys
    ORDER BY created_at DESC, kid`.pipe(Effect.orDie)

  /** Stores a new key, of those that are made at once only one: the others find that `newest` is not the newest any more. */
  const generate = Effect.fnUntraced(function* (newest: string | undefined, beside: ReadonlyArray<Statement> = []) {
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

  const load = Effect.gen(function* () {
    const all = yield* stored
    const now = yield* Clock.currentTimeMillis
    const isRetired = (i: number) => i > 0 && all[i - 1]!.created_at <= now - retirement
    const rows = all.filter((_, i) => !isRetired(i))
    const published = rows.map((row) => JSON.parse(row.public) as JWK)
    const imported = yield* Effect.forEach(published, (jwk) =>
      Effect.map(
        Effect.promise(() => importJWK(jwk, algorithm)),
        (key) => [jwk.kid!, key as CryptoKey] as const
      )
    )
    const newest = rows[0]!
    const sealed = JSON.parse(yield* secret.unseal(newest.sealed)) as JWK
    const key = (yield* Effect.promise(() => importJWK(sealed, algorithm))) as CryptoKey
    return {
      current: { kid: newest.kid, key },
      made_at: newest.created_at,
      byId: new Map(imported),
      published,
      retired: all.filter((_, i) => isRetired(i)).map(({ kid }) => kid)
    }
  })

  if ((yield* stored).length === 0) yield* generate(undefined)
  let keys = yield* load

  const reload = Effect.map(load, (loaded) => {
    keys = loaded
  })
  const readAgain = yield* Effect.cachedWithTTL(reload, readAgainAfter)
  const { publish, subscribe } = yield* Signals
  const run = Runtime.runFork(yield* Effect.runtime<never>())
  yield* subscribe(topic, () => void run(reload))
  const rotate: SigningKeysContract["rotate"] = (beside) =>
    Effect.suspend(() => generate(keys.current.kid, beside)).pipe(
      Effect.zipRight(reload),
      Effect.zipRight(Effect.suspend(() => publish(topic, [keys.current.kid]))),
      Effect.map(() => keys.current)
    )

  const keepFresh = Effect.gen(function* () {
    yield* reload
    if (keys.retired.length > 0) {
      const retired = sql`DELETE FROM tollgate_auth_signing_keys WHERE ${sql.in("kid", keys.retired)}`
      yield* Statements.write(writer, statement(retired))
      yield* Effect.annotateLogs(Effect.logInfo("signing keys were retired"), "kids", keys.retired.join(" "))
    }
    const now = yield* Clock.currentTimeMillis
    if (now - keys.made_at < Duration.toMillis(rotation)) return
    const { kid } = yield* rotate()
    yield* Effect.annotateLogs(Effect.logInfo("a new key signs access tokens"), "kid", kid)
  })

  return {
    current: () => keys.current,
    find: (kid) =>
      Effect.suspend(() => {
        const key = keys.byId.get(kid)
        return key === undefined ? Effect.map(readAgain, () => keys.byId.get(kid)) : Effect.succeed(key)
      }),
    published: () => keys.published,
    rotate,
    reload,
    job: { name: "signing keys", turn: Effect.as(keepFresh, looks), everywhere: true }
  } satisfies SigningKeysContract
})

/** A text that the deployment's secret has sealed, by which it can be told from another; `undefined` where nothing was sealed yet. */
export const sealedSample: Effect.Effect<string | undefined, never, SqlClient> = Effect.flatMap(
  SqlClient,
  (sql) => sql<Pick<Row, "sealed">>`SELECT sealed FROM tollgate_auth_signing_keys ORDER BY created_at DESC, kid LIMIT 1`
).pipe(
  Effect.map(([row]) => row?.sealed),
  Effect.orDie
)

/** Under another secret no private half can be opened: access tokens are signed by a new key, which the next start makes. */
export const signingKeysEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_auth_signing_keys`,
  statements: (sql) => [statement(sql`DELETE FROM tollgate_auth_signing_keys`)],
  notice: (n) => `${n} signing keys are deleted: access tokens that they signed end, and a new key is made`
}
