/**
 * Told of every balance that a charge or a transfer made fall; `autoreload/` listens. It is called in the middle of every call, so
 * it must return at once and do its work elsewhere.
 */
import { Context } from "effect"
import type { Nano } from "../kernel/Money.ts"

export type BalanceFell = (billing_account: string, before: Nano, after: Nano) => void

export class BalanceWatch extends Context.Reference<BalanceWatch>()("tollgate/gate/BalanceWatch", {
  defaultValue: (): BalanceFell => () => {}
}) {}
