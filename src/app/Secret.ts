/**
 * Reads the deployment's secret from the environment or from a file in the data folder, which the first start creates.
 *
 * Where the specification is silent:
 * - Without `TOLLGATE_SECRET`, the first start generates a secret and stores it in `DATA_DIR/secret`. If a database was used with another secret, the
 *   service neither starts nor generates a new secret. `reseal` deletes API keys, sign-ins, codes and signing keys, revokes open invitations and
 *   abandons queued emails. Pending transfers remain, but their links stop working. Each room defines how its own rows change (`Ending`).
 */
import { Effect, Layer, Option, Redacted } from "effect"
import { randomBytes } from "node:crypto"
import { existsSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as DeploymentSecret from "../storage/secret/DeploymentSecret.ts"
import { sealedSample } from "../people/auth/SigningKeys.ts"
import type { EnvironmentFacts } from "./Environment.ts"
import { ConfigProblem } from "../kernel/Setting.ts"
import * as Opening from "../storage/sqlite/Opening.ts"

/**
 * Provides the secret. Fails if it does not decrypt the database's sealed values. Generates a secret only for a database that was never used with a
 * secret.
 */
export const layer = (environment: EnvironmentFacts) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const sealed = yield* sealedSample
      const found = yield* readSecret(environment)
      if (sealed === undefined) return DeploymentSecret.layer(found?.[0] ?? (yield* makeSecret(environment)))
      const fitting = yield* Effect.findFirst(found ?? [], (bytes) => DeploymentSecret.opens(bytes, sealed))
      if (Option.isSome(fitting)) return DeploymentSecret.layer(fitting.value)
      const path = secretFile(environment)
      const why =
        environment.secret !== undefined
          ? `TOLLGATE_SECRET is not the secret that ${environment.database.shown} was used with; set the previous secret`
          : found === undefined
            ? `the deployment's secret is missing: ${environment.database.shown} was used with a secret, but there is no ${path}, and ` +
              "TOLLGATE_SECRET is not set. Restore the secret from your backup"
            : `${path} is not the secret that ${environment.database.shown} was used with; restore the previous secret from your backup`
      return yield* new ConfigProblem({
        message: `${why}. If it is lost for good, "tollgate reseal" keeps all balances and invalidates keys and sign-ins`
      })
    })
  )

const secretFile = ({ data_dir }: EnvironmentFacts): string => join(data_dir, "secret")

/** Reads the existing secret both as hex and as plain text. The likelier reading comes first. Returns `undefined` if there is no secret. */
const readSecret = (
  environment: EnvironmentFacts
): Effect.Effect<readonly [Uint8Array, ...Array<Uint8Array>] | undefined, ConfigProblem> =>
  Effect.gen(function* () {
    const { secret } = environment
    const text = secret === undefined ? yield* storedText(environment) : Redacted.value(secret)
    if (text === undefined) return undefined
    const plain = Buffer.byteLength(text) >= 32 ? [Buffer.from(text, "utf8")] : []
    const hex = /^([0-9a-f]{2}){32,}$/i.test(text) ? [Buffer.from(text, "hex")] : []
    // The operator may have moved the secret's text from the file to the environment, or the other way around.
    const [first, ...others] = secret === undefined ? [...hex, ...plain] : [...plain, ...hex]
    if (first !== undefined) return [first, ...others] as const
    return yield* new ConfigProblem({
      message:
        secret === undefined
          ? `${secretFile(environment)} is ${text === "" ? "empty" : "truncated"}; restore it from your backup, or delete it if it was never used`
          : "TOLLGATE_SECRET: must be at least 32 characters long; if it is not set, the service generates a secret"
    })
  })

const storedText = (environment: EnvironmentFacts): Effect.Effect<string | undefined, ConfigProblem> =>
  Effect.try({
    try: () => readFileSync(secretFile(environment), "utf8").trim(),
    catch: (error) =>
      (error as NodeJS.ErrnoException).code === "ENOENT"
        ? undefined
        : new ConfigProblem({ message: Opening.wordsOf(secretFile(environment), error) })
  }).pipe(Effect.catchAll((problem) => problem ?? Effect.succeed(undefined)))

/** Creates a secret file. Two concurrent processes get the same secret. After a crash, the file is either complete or missing. */
const makeSecret = (environment: EnvironmentFacts): Effect.Effect<Uint8Array, ConfigProblem> =>
  Effect.try({
    try: () => {
      const path = secretFile(environment)
      const fresh = `${path}.${randomBytes(8).toString("hex")}`
      try {
        writeFileSync(fresh, randomBytes(32).toString("hex"), { flag: "wx", mode: 0o600, flush: true })
        linkSync(fresh, path)
      } catch {
        // Either the file already exists, or the file system does not support links.
        if (!existsSync(path)) renameSync(fresh, path)
      } finally {
        rmSync(fresh, { force: true })
      }
      return Buffer.from(readFileSync(path, "utf8").trim(), "hex")
    },
    catch: (error) => new ConfigProblem({ message: Opening.wordsOf(secretFile(environment), error) })
  })

/** Returns whether the secret decrypts the database's sealed values; true if the database contains none. */
export const fits = (environment: EnvironmentFacts) =>
  Effect.gen(function* () {
    const sealed = yield* sealedSample
    if (sealed === undefined) return true
    const found = yield* readSecret(environment)
    return Option.isSome(yield* Effect.findFirst(found ?? [], (bytes) => DeploymentSecret.opens(bytes, sealed)))
  })
