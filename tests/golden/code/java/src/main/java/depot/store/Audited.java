package depot.store;

@interface Audited {
    String by() default "";

    int TIMES = 3;
}
