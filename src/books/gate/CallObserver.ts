/**
 * Reports settled calls to the metrics. Calls released because their run had ended are not reported, because no process observed their end.
 */
import { Context } from "effect"
import type { Nano } from "../../kernel/Money.ts"
import type { CallFacts, CallOutcome } from "../ledger/rules/Transaction.ts"

export type ObservedFacts = Pick<CallFacts, "model" | "provider">

export type ObserveCall = (facts: ObservedFacts, outcome: CallOutcome, charged: Nano) => void

export class CallObserver extends Context.Reference<CallObserver>()("tollgate/gate/CallObserver", {
  defaultValue: (): ObserveCall => () => {}
}) {}
