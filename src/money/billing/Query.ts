/** Parses the ledger query. `source` is `call`, or entry sources separated by commas. */
import { Either } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import type { PageOf } from "../../kernel/Page.ts"
import type { EntrySources } from "../../books/ledger/rows/EntriesBySource.ts"
import { entrySources } from "./Billing.ts"
import type { LedgerQuery } from "./Billing.ts"

export const ledgerOf = ({
  page,
  per_page,
  source
}: LedgerQuery): Either.Either<PageOf & { readonly sources: EntrySources | undefined }, InvalidRequest> => {
  if (source === undefined || source === "call") return Either.right({ page, per_page, sources: source })
  const names = source.split(",").map((name) => name.trim())
  const sources = entrySources.filter((one) => names.includes(one))
  return sources.length === new Set(names).size
    ? Either.right({ page, per_page, sources })
    : Either.left(
        new InvalidRequest({
          field: "source",
          rule: `must be call, or one or more of ${entrySources.join(", ")}, separated by commas`
        })
      )
}
