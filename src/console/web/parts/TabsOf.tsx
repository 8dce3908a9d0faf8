/** Tabs, each with a panel. */
import { Tab, TabList, TabPanel, Tabs } from "react-aria-components/Tabs"
import type { ReactNode } from "react"

interface TabsOfProps {
  readonly label: string
  readonly tabs: ReadonlyArray<{ readonly id: string; readonly title: ReactNode; readonly content: ReactNode }>
  readonly selected?: string
  readonly onSelect?: (id: string) => void
}

export const TabsOf = ({ label, onSelect, selected, tabs }: TabsOfProps) => (
  <Tabs
    className="tabs"
    {...(selected !== undefined && { selectedKey: selected })}
    {...(onSelect !== undefined && { onSelectionChange: (key) => onSelect(String(key)) })}
  >
    <TabList className="tabs-list" aria-label={label}>
      {tabs.map(({ id, title }) => (
        <Tab key={id} id={id} className="tabs-tab">
          {title}
        </Tab>
      ))}
    </TabList>
    {tabs.map(({ content, id }) => (
      <TabPanel key={id} id={id} className="tabs-panel">
        {content}
      </TabPanel>
    ))}
  </Tabs>
)
