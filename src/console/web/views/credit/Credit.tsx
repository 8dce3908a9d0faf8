/** The credit view: the balance by credit type, the ways to refill it, and the ledger. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { ArrowLeftRight, Plus, Ticket } from "lucide-react"
import { useState } from "react"
import { useBillingAccount } from "../../app/Asking.ts"
import { nano } from "../../money.ts"
import { Button, ButtonLink } from "../../parts/Button.tsx"
import { Money } from "../../parts/Money.tsx"
import { Page } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { creditTexts } from "../../texts/credit.ts"
import { Alerts } from "./Alerts.tsx"
import { Allowance, Redeem } from "./Allowance.tsx"
import { AutoReload } from "./AutoReload.tsx"
import { useManages } from "./asking.ts"
import { Arrival, Buy } from "./Buy.tsx"
import { Entries } from "./Entries.tsx"
import { Methods } from "./Methods.tsx"
import { Purchases } from "./Purchases.tsx"

const route = getRouteApi("/person/credit")

const Balance = () => (
  <Answer of={useBillingAccount()} lines={2}>
    {({ credits, giftable_credits, held_credits, status }) => (
      <section aria-label={creditTexts.balance} className="stack">
        {creditTexts.statuses[status] === undefined ? null : (
          <p className="credit-note credit-note-bad" role="alert">
            {creditTexts.statuses[status]}
          </p>
        )}
        <dl className="credit-figures">
          <div className="credit-figure credit-total">
            <dt>{creditTexts.balance}</dt>
            <dd className="money-large">
              <Money of={credits} as="exact" focusable />
            </dd>
          </div>
          {(["giftable", "granted", "held"] as const).map((name) => (
            <div key={name} className="credit-figure">
              <dt>{creditTexts.classes[name]}</dt>
              <dd>
                <Money
                  of={
                    name === "giftable"
                      ? giftable_credits
                      : name === "held"
                        ? held_credits
                        : nano(credits) - nano(giftable_credits)
                  }
                  as="exact"
                  focusable
                />
                <small>{creditTexts.classesHelp[name]}</small>
              </dd>
            </div>
          ))}
        </dl>
      </section>
    )}
  </Answer>
)

export const Credit = () => {
  const { buy } = route.useSearch()
  const navigate = useNavigate()
  const manages = useManages()
  const [isRedeeming, setRedeeming] = useState(false)
  const setBuying = (open: boolean): void =>
    void navigate({ to: "/credit", search: open ? { buy: "yes" } : {}, replace: !open })
  return (
    <Page
      title={creditTexts.title}
      lead={creditTexts.lead}
      actions={
        <>
          <ButtonLink to="/transfers" search={{ send: "yes" }} icon={ArrowLeftRight}>
            {creditTexts.send}
          </ButtonLink>
          <Button icon={Ticket} onPress={() => setRedeeming(true)}>
            {creditTexts.redeem}
          </Button>
          {manages === true ? (
            <Button kind="primary" icon={Plus} onPress={() => setBuying(true)}>
              {creditTexts.buy}
            </Button>
          ) : null}
        </>
      }
    >
      <Arrival />
      <Balance />
      <Allowance />
      {manages === false ? <p className="quiet small">{creditTexts.notManager}</p> : null}
      <div className="credit-pair">
        <AutoReload />
        <Alerts />
      </div>
      <Methods />
      <Purchases />
      <Entries />
      {isRedeeming ? <Redeem onClose={() => setRedeeming(false)} /> : null}
      {buy === "yes" ? <Buy onClose={() => setBuying(false)} /> : null}
    </Page>
  )
}
