/** Lists the issues that need attention, each as a sentence with a link. Renders nothing if there are none. */
import { useQuery } from "@tanstack/react-query"
import type { LinkProps } from "@tanstack/react-router"
import { TriangleAlert } from "lucide-react"
import { useBillingAccount, useKeys, useMembership } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import { count } from "../../moments.ts"
import { nano } from "../../money.ts"
import { ButtonLink } from "../../parts/Button.tsx"
import { useNow } from "../../parts/When.tsx"
import { texts } from "../../texts.ts"

interface Issue {
  readonly id: string
  readonly text: string
  readonly to: NonNullable<LinkProps["to"]>
  readonly action: string
}

const week = 7 * 86_400_000
const dollar = 1_000_000_000n

const useBalanceIssues = (): ReadonlyArray<Issue> => {
  const { data } = useBillingAccount()
  if (data === undefined) return []
  const matter = (id: string, text: string): Issue => ({ id, text, to: "/credit", action: texts.home.addCredit })
  const left = nano(data.credits)
  return [
    ...(data.status === "active" ? [] : [matter("status", texts.home.attentionStatus(data.status))]),
    ...(left === 0n ? [matter("empty", texts.home.attentionBalance)] : []),
    ...(left > 0n && left < dollar ? [matter("low", texts.home.attentionLow)] : [])
  ]
}

const useKeyIssues = (): ReadonlyArray<Issue> => {
  const { data } = useKeys()
  const now = useNow()
  const keys = data?.records ?? []
  const ending = keys.filter(({ expires_at }) => expires_at !== undefined && Date.parse(expires_at) < now + week)
  const full = keys.filter(
    ({ spending_limit_usd, spent_usd }) =>
      spending_limit_usd !== undefined &&
      spent_usd !== undefined &&
      nano(spent_usd) * 10n >= nano(spending_limit_usd) * 9n
  )
  const matter = (id: string, text: string): Issue => ({ id, text, to: "/keys", action: texts.home.seeKeys })
  return [
    ...(ending.length === 0 ? [] : [matter("ending", texts.home.attentionKeys(ending.length, count(ending.length)))]),
    ...full.map(({ id, name }) => matter(id, texts.home.attentionLimit(name)))
  ]
}

const useTransferIssues = (): ReadonlyArray<Issue> => {
  const { data } = useQuery({
    queryKey: ["transfers", "pending"],
    queryFn: () => resultOf(api.GET("/v1/transfers", { params: { query: { status: "pending", per_page: "1" } } }))
  })
  const waiting = data?.total_records ?? 0
  return waiting === 0
    ? []
    : [
        {
          id: "transfers",
          text: texts.home.attentionTransfers(waiting, count(waiting)),
          to: "/transfers",
          action: texts.home.seeTransfers
        }
      ]
}

const useReloadIssues = (): ReadonlyArray<Issue> => {
  const tenant_id = tenantId()
  const role = useMembership()?.role
  const { data } = useQuery({
    queryKey: ["auto-reload", tenant_id],
    enabled: role === "owner" || role === "admin",
    queryFn: () => resultOf(api.GET("/v1/tenants/{tenant_id}/billing/auto-reload", { params: { path: { tenant_id } } }))
  })
  const why = data?.auto_reload.disabled_reason ?? null
  return why === null
    ? []
    : [{ id: "reload", text: texts.home.attentionReload(why), to: "/credit", action: texts.home.seeReload }]
}

export const Attention = () => {
  const issues = [...useBalanceIssues(), ...useKeyIssues(), ...useTransferIssues(), ...useReloadIssues()]
  if (issues.length === 0) return null
  return (
    <section aria-label={texts.home.attention}>
      <ul className="home-attention">
        {issues.map(({ action, id, text, to }) => (
          <li key={id} className="home-matter">
            <TriangleAlert size={16} strokeWidth={1.75} aria-hidden />
            <span>{text}</span>
            <ButtonLink to={to} kind="ghost">
              {action}
            </ButtonLink>
          </li>
        ))}
      </ul>
    </section>
  )
}
