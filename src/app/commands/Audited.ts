/** The audit log of what commands change: who acts is the user of the machine who runs the command. */
import { Clock, Effect } from "effect"
import type { Statement } from "../../books/ledger/Transaction.ts"
import * as Audit from "../../operations/operator/Audit.ts"
import type { Operator } from "../../operations/operator/Operator.ts"
import { userName } from "./UserName.ts"

const operator: Effect.Effect<Operator> = Effect.sync(() => ({ name: userName(), via: "command" }))

/** Makes entries for the transactions of acts. */
export const auditedAt: Effect.Effect<(act: Audit.Act) => Statement> = Effect.map(
  Effect.all([operator, Clock.currentTimeMillis]),
  ([by, now]) =>
    (act: Audit.Act) =>
      Audit.entry(by, act, now)
)

/** The entry for the transaction of an act. */
export const audited = (act: Audit.Act): Effect.Effect<Statement> => Effect.map(auditedAt, (entry) => entry(act))
