/** The layout of every view: a header with the main action, and sections separated by hairlines. */
import { useEffect } from "react"
import type { ReactNode } from "react"
import { texts } from "../texts.ts"

interface PageProps {
  readonly title: string
  readonly lead?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export const Page = ({ actions, children, lead, title }: PageProps) => {
  useEffect(() => {
    document.title = `${title} · ${texts.app.console}`
  }, [title])
  return (
    <div className="page">
      <header className="page-header">
        <div>
          <h1 className="page-title">{title}</h1>
          {lead === undefined ? null : <p className="page-lead">{lead}</p>}
        </div>
        {actions === undefined ? null : <div className="row wrap">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

interface SectionProps {
  readonly title: string
  readonly lead?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export const Section = ({ actions, children, lead, title }: SectionProps) => (
  <section className="section" aria-label={title}>
    <header className="section-header">
      <h2 className="section-title">{title}</h2>
      {lead === undefined ? null : <p className="section-lead">{lead}</p>}
      {actions === undefined ? null : <div className="row wrap push">{actions}</div>}
    </header>
    {children}
  </section>
)

export const Facts = ({ of }: { readonly of: ReadonlyArray<readonly [name: string, value: ReactNode]> }) => (
  <dl className="facts">
    {of.map(([name, value]) => (
      <div key={name} className="facts-row">
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)
