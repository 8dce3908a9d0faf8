/** WebAuthn challenges. Each challenge is stored as a hash, bound to one account or browser, and usable once within five minutes. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Duration, Effect } from "effect"
import { createHash, randomBytes } from "node:crypto"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { AccountId } from "../../kernel/Ids.ts"

export const challengeLifetime = Duration.minutes(5)

/** The holder of a challenge. An account registers a passkey; a browser, identified by its cookie, signs in. */
export type Holder = { readonly account_id: AccountId } | { readonly browser: string }

/** Hashes a challenge or cookie. Both are 32 random bytes, so a plain hash reveals nothing. */
const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

export const newSecret = (): string => randomBytes(32).toString("base64url")

export const make = (sql: SqlClient, writer: WriterContract) => {
  /** Issues a challenge. An account has only one at a time. */
  const issue = Effect.fn("Passkeys.issue")(function* (holder: Holder) {
    const now = yield* Clock.currentTimeMillis
    const challenge = newSecret()
    const account_id = "account_id" in holder ? holder.account_id : null
    const row = {
      hash: hashOf(challenge),
      account_id,
      browser_hash: "browser" in holder ? hashOf(holder.browser) : null,
      expires_at: now + Duration.toMillis(challengeLifetime)
    }
    yield* Statements.write(
      writer,
      statement(sql`DELETE FROM tollgate_passkeys_challenges WHERE expires_at <= ${now}`),
      statement(sql`DELETE FROM tollgate_passkeys_challenges WHERE account_id = ${account_id}`),
      statement(sql`INSERT INTO tollgate_passkeys_challenges ${sql.insert(row)}`)
    )
    return challenge
  })

  /** Spends a challenge. Returns `false` if the holder does not have this challenge. */
  const spend = Effect.fn("Passkeys.spend")(function* (challenge: string, holder: Holder) {
    const now = yield* Clock.currentTimeMillis
    const held =
      "account_id" in holder ? sql`account_id = ${holder.account_id}` : sql`browser_hash = ${hashOf(holder.browser)}`
    return yield* Statements.tryWrite(
      writer,
      statement(
        sql`DELETE FROM tollgate_passkeys_challenges
          WHERE hash = ${hashOf(challenge)} AND ${held} AND expires_at > ${now} RETURNING hash`,
        1
      )
    )
  })

  return { issue, spend }
}

export type Challenges = ReturnType<typeof make>
