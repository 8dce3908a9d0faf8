/** Errors of the receipt routes. */
import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

/** The entry is not in the log yet. A background loop adds it about a second after the commit. */
export class NotInLog extends Problem<NotInLog>()("NotInLog", {
  status: 404,
  error: "the entry is not in the log yet; try again in a second or two",
  code: "not_in_log"
}) {}

export class NothingCharged extends Problem<NothingCharged>()("NothingCharged", {
  status: 404,
  error: "the call cost nothing, so there is no ledger entry",
  code: "nothing_charged",
  fields: { usage_id: Schema.String },
  details: {}
}) {}

/** Another tenant paid. A receipt shows the payer's balance, so only the payer may get it. */
export class PaidByAnother extends Problem<PaidByAnother>()("PaidByAnother", {
  status: 403,
  error: "another tenant paid for this call; only that tenant can get the receipt",
  code: "paid_by_another_tenant"
}) {}

export class EntryNotFound extends Problem<EntryNotFound>()("EntryNotFound", {
  status: 404,
  error: "the ledger contains no entry with this number",
  code: "entry_not_found"
}) {}

/** A day's tree is built one minute after the day ends. */
export class LiabilitiesNotFound extends Problem<LiabilitiesNotFound>()("LiabilitiesNotFound", {
  status: 404,
  error: "there is no proof of liabilities for this day",
  code: "liabilities_not_found"
}) {}

export class NoBalanceThen extends Problem<NoBalanceThen>()("NoBalanceThen", {
  status: 404,
  error: "the account had no ledger entry before the end of this day",
  code: "no_balance_then"
}) {}
