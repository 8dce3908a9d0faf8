/** Allows the recipient of a pending transfer to create an account. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect, Layer } from "effect"
import { InvitedElsewhere } from "../../people/tenants/Registration.ts"

export const invitedByTransfer = Layer.effect(
  InvitedElsewhere,
  Effect.map(
    SqlClient,
    (sql) => (email: string) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.map(
          Effect.orDie(sql`SELECT 1 FROM tollgate_transfers
          WHERE recipient_email = ${email} AND status = 'pending' AND expires_at > ${now} LIMIT 1`),
          (rows) => rows.length > 0
        )
      )
  )
)
