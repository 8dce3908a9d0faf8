/**
 * Accepts each `state` that returns from an identity provider only once, across all nodes. The database stores the hashes of used states until they
 * expire.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect } from "effect"
import * as Statements from "../../books/ledger/write/Statements.ts"
import { statement } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import type { ProviderState } from "./BrowserState.ts"

export const make = (sql: SqlClient, writer: WriterContract, secret: DeploymentSecretContract) => ({
  /** Accepts a return. Returns `false` if it was already accepted. */
  accept: Effect.fn("Returns.accept")(function* ({ nonce, provider, until }: ProviderState) {
    const now = yield* Clock.currentTimeMillis
    const hash = secret.hash("sign_in", `return ${provider} ${nonce}`)
    return yield* Statements.tryWrite(
      writer,
      statement(sql`DELETE FROM tollgate_auth_returns WHERE expires_at < ${now}`),
      statement(
        sql`INSERT INTO tollgate_auth_returns (hash, expires_at) VALUES (${hash}, ${until})
          ON CONFLICT DO NOTHING RETURNING hash`,
        1
      )
    )
  })
})

export type Returns = ReturnType<typeof make>
