/** Creates the audit entries of commands. The operator is the operating-system user who runs the command. */
import { Clock, Effect } from "effect"
import type { Statement } from "../../books/ledger/rules/Transaction.ts"
import * as Audit from "../../operations/operator/Audit.ts"
import type { Operator } from "../../operations/operator/Operator.ts"
import { userName } from "./UserName.ts"

export const operator: Effect.Effect<Operator> = Effect.sync(() => ({ name: userName(), via: "command" }))

/** Returns a function that creates an action's audit entry. The caller must add the entry to the action's transaction. */
export const auditedAt: Effect.Effect<(act: Audit.Act) => Statement> = Effect.map(
  Effect.all([operator, Clock.currentTimeMillis]),
  ([by, now]) =>
    (act: Audit.Act) =>
      Audit.entry(by, act, now)
)

export const audited = (act: Audit.Act): Effect.Effect<Statement> => Effect.map(auditedAt, (entry) => entry(act))
