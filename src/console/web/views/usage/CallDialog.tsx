/** Explains a call line by line: usage, prices, reservation, charge and payer. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { api, responseBody } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { nano } from "../../money.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Copy } from "../../parts/Copy.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Money } from "../../parts/Money.tsx"
import { Facts } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { When } from "../../parts/When.tsx"
import { inWords, texts } from "../../texts.ts"
import { ChargeReceipt } from "../receipts/Verification.tsx"

type Explanation = Schemas["Explanation"]

const Lines = ({ of }: { readonly of: NonNullable<Explanation["price"]> }) => (
  <table className="call-lines" role="table">
    <thead role="rowgroup">
      <tr role="row">
        {[texts.call.line, texts.call.quantity, texts.call.unitPrice, texts.call.amount].map((title) => (
          <th key={title} scope="col" role="columnheader">
            {title}
          </th>
        ))}
      </tr>
    </thead>
    <tbody role="rowgroup">
      {of.lines.map(({ amount_usd, quantity, unit, unit_price_usd }) => (
        <tr key={unit} role="row">
          <th scope="row" role="rowheader">
            {inWords(unit)}
          </th>
          <td role="cell" className="call-quantity">
            {count(quantity)}
          </td>
          <td role="cell" className="call-price">{`$${unit_price_usd}`}</td>
          <td role="cell" className="call-amount">{`$${amount_usd}`}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

const Sum = ({
  children,
  of,
  strong = false
}: {
  readonly children: ReactNode
  readonly of: Explanation["charged_usd"]
  readonly strong?: boolean
}) => (
  <div className={strong ? "call-sum call-sum-strong" : "call-sum"}>
    <dt>{children}</dt>
    <dd>
      <Money of={of} as="exact" />
    </dd>
  </div>
)

/** Returns the call's labels and the budgets that admitted it. Omits missing values. */
const labelFacts = (
  { budgets, end_user, run_id, tags }: Explanation,
  runLink: (run_id: string) => ReactNode
): ReadonlyArray<readonly [string, ReactNode]> => [
  ...(tags === undefined ? [] : [[texts.call.tags, pairsOf(tags)] as const]),
  ...(end_user === undefined ? [] : [[texts.call.endUser, end_user] as const]),
  ...(run_id === undefined ? [] : [[texts.call.run, runLink(run_id)] as const]),
  ...(budgets === undefined ? [] : [[texts.call.budgets, budgets.join(", ")] as const])
]

const pairsOf = (tags: NonNullable<Explanation["tags"]>): string =>
  Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ")

const linkToRun = (run_id: string): ReactNode => (
  <Link key="run" to="/runs/$run_id" params={{ run_id }}>
    {run_id}
  </Link>
)

const Explained = ({ of, runLink }: { readonly of: Explanation; readonly runLink: (run_id: string) => ReactNode }) => {
  const released = nano(of.reserved_usd) - nano(of.charged_usd)
  return (
    <>
      <p>{of.summary}</p>
      {of.price === null ? <p className="quiet">{texts.call.noPrice}</p> : <Lines of={of.price} />}
      <dl className="call-sums">
        <Sum of={of.computed_usd}>{texts.call.computed}</Sum>
        <Sum of={of.reserved_usd}>{texts.call.reserved}</Sum>
        {released > 0n ? (
          <div className="call-sum">
            <dt>{texts.call.released}</dt>
            <dd>
              <Money of={released} as="exact" />
            </dd>
          </div>
        ) : null}
        {nano(of.uncollected_usd) > 0n ? <Sum of={of.uncollected_usd}>{texts.call.uncollected}</Sum> : null}
        <Sum of={of.charged_usd} strong>
          {texts.call.charged}
        </Sum>
      </dl>
      <Facts
        of={[
          [texts.call.payer, of.payer.because],
          [texts.usage.model, of.model],
          [texts.usage.endpoint, of.endpoint],
          [texts.call.provider, of.provider],
          [
            texts.usage.state,
            of.success ? texts.usage.ok : <Badge tone="bad">{inWords(of.error_type ?? texts.usage.failed)}</Badge>
          ],
          ...labelFacts(of, runLink),
          [texts.call.usage, texts.call.measured[of.usage_source] ?? of.usage_source],
          [texts.usage.when, <When key="when" at={of.timestamp} as="exact" />],
          ...(of.price === null ? [] : [[texts.call.version, <code key="version">{of.price.version}</code>] as const]),
          [
            texts.call.id,
            <span key="id" className="row">
              <code>{of.usage_id}</code>
              <Copy text={of.usage_id} />
            </span>
          ]
        ]}
      />
    </>
  )
}

interface CallDialogProps {
  readonly id: string | undefined
  readonly onClose: () => void
  /** Fetches the explanation. The default sends the request as the signed-in user. */
  readonly explain?: (usage_id: string) => Promise<Explanation>
}

const explainToPerson = (usage_id: string): Promise<Explanation> =>
  responseBody(api.GET("/v1/usage/{usage_id}/explain", { params: { path: { usage_id } } }))

export const CallDialog = ({ explain = explainToPerson, id, onClose }: CallDialogProps) => {
  const explanation = useQuery({
    queryKey: ["call", id],
    enabled: id !== undefined,
    // A settled call no longer changes.
    staleTime: Infinity,
    queryFn: () => explain(id!)
  })
  return (
    <Dialog title={texts.call.title} isOpen={id !== undefined} onClose={onClose} wide>
      <Answer of={explanation} lines={8}>
        {(of) =>
          explain === explainToPerson ? (
            <>
              <Explained of={of} runLink={linkToRun} />
              <ChargeReceipt key={of.usage_id} of={of} />
            </>
          ) : (
            <Explained of={of} runLink={(run_id) => run_id} />
          )
        }
      </Answer>
    </Dialog>
  )
}
