/**
 * The keys that access tokens are signed with: ES256, the newest signs, all are published, so that anyone can verify a token and a
 * new key signs nobody out. Private halves are stored sealed.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer } from "effect"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose"
import type { CryptoKey, JWK } from "jose"
import { statement } from "../ledger/Transaction.ts"
import { Writer } from "../ledger/Writer.ts"
import { DeploymentSecret } from "./DeploymentSecret.ts"

export interface SigningKey {
  readonly kid: string
  readonly key: CryptoKey
}

interface Contract {
  readonly current: SigningKey
  /** The public key of that id, if it is one of ours. */
  readonly find: (kid: string) => CryptoKey | undefined
  /** The public halves, as `/.well-known/jwks.json` shows them. */
  readonly published: ReadonlyArray<JWK>
}

export class SigningKeys extends Context.Tag("tollgate/auth/SigningKeys")<SigningKeys, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(SigningKeys, make))
}

export const algorithm = "ES256"

interface Row {
  readonly kid: string
  readonly public: string
  readonly sealed: string
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* Writer
  const secret = yield* DeploymentSecret
  const stored = sql<Row>`SELECT kid, public, sealed FROM auth_signing_keys ORDER BY created_at DESC, kid`.pipe(
    Effect.orDie
  )

  const generate = Effect.gen(function* () {
    const { privateKey, publicKey } = yield* Effect.promise(() => generateKeyPair(algorithm, { extractable: true }))
    const jwk = yield* Effect.promise(() => exportJWK(publicKey))
    const kid = yield* Effect.promise(() => calculateJwkThumbprint(jwk))
    const sealed = yield* secret.seal(JSON.stringify(yield* Effect.promise(() => exportJWK(privateKey))))
    const published = JSON.stringify({ ...jwk, kid, alg: algorithm, use: "sig" })
    const now = yield* Clock.currentTimeMillis
    // Of two processes that start at once on an empty table, one makes the key.
    const insert = sql`INSERT INTO auth_signing_keys (kid, public, sealed, created_at)
      SELECT ${kid}, ${published}, ${sealed}, ${now} WHERE NOT EXISTS (SELECT 1 FROM auth_signing_keys)`
    yield* Effect.orDie(writer.submit({ postings: [], statements: [statement(insert)] }))
    return yield* stored
  })

  const rows = yield* Effect.flatMap(stored, (rows) => (rows.length > 0 ? Effect.succeed(rows) : generate))
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
  const byId = new Map(imported)

  return { current: { kid: newest.kid, key }, find: (kid) => byId.get(kid), published } satisfies Contract
})
